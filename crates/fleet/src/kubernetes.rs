//! What Kubernetes is asked for, and what it answers. Pure: documents from words, answers from documents.
//!
//! One Job (`batch/v1`) with a pod for each node. Pods of one sweep repel each other by host name (required
//! anti-affinity), and may be on the nodes that were asked for only (required node affinity): so each gets a node of
//! its own. A pod that fails is a row and is not started again (`backoffLimitPerIndex: 0`), and what one pod does ends
//! no other. Each prints its record, which `kubectl logs` brings back.

use std::collections::BTreeMap;

use fingerpost_record::text::clean_short;
use serde_json::{Value, json};

use crate::nodes;

/// The label by which the pods of a sweep know each other.
const SWEEP: &str = "fingerpost.dev/sweep";
/// The label in which Kubernetes keeps a node's host name.
const HOST_NAME: &str = "kubernetes.io/hostname";
/// Seconds after its end in which the Job is still there to be looked at, should nobody remove it.
const KEPT: u64 = 3600;
/// The most pods of one Job that fail for themselves (the schema's own bound of `maxFailedIndexes`).
const MOST: usize = 100_000;

/// One Job.
#[derive(Clone, Debug)]
pub struct Job<'a> {
    /// Its name, which nothing else has: letters, digits and dashes.
    pub name: &'a str,
    /// Where it is made.
    pub namespace: Option<&'a str>,
    /// The image that holds the program as its entry point.
    pub image: &'a str,
    /// The value of `kubernetes.io/hostname` of each node.
    pub hosts: &'a [String],
    /// How many may run at a time.
    pub at_once: usize,
    /// The most seconds that one may take.
    pub timeout: u64,
    /// Words after `run` on every node.
    pub words: &'a [String],
    /// Whether pods go to nodes that are kept free by a taint.
    pub tolerate: bool,
}

/// The manifest.
pub fn manifest(job: &Job) -> Value {
    let labels = json!({ SWEEP: job.name });
    let mut spec = json!({
        "restartPolicy": "Never",
        "automountServiceAccountToken": false,
        "enableServiceLinks": false,
        "activeDeadlineSeconds": job.timeout + 300,
        "affinity": {
            "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": [
                { "matchExpressions": [{ "key": HOST_NAME, "operator": "In", "values": job.hosts }] }
            ] } },
            "podAntiAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": [
                { "topologyKey": HOST_NAME, "labelSelector": { "matchLabels": labels } }
            ] },
        },
        "containers": [container(job)],
        "volumes": [{ "name": "tmp", "emptyDir": {} }],
    });
    if job.tolerate {
        spec["tolerations"] = json!([{ "operator": "Exists", "effect": "NoSchedule" }]);
    }
    let mut metadata = json!({ "name": job.name, "labels": labels });
    if let Some(namespace) = job.namespace {
        metadata["namespace"] = json!(namespace);
    }
    json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata,
        "spec": {
            "completionMode": "Indexed",
            "completions": job.hosts.len(),
            "parallelism": job.at_once.min(job.hosts.len()),
            "backoffLimitPerIndex": 0,
            "maxFailedIndexes": job.hosts.len().min(MOST),
            "ttlSecondsAfterFinished": KEPT,
            "template": { "metadata": { "labels": labels }, "spec": spec },
        },
    })
}

fn container(job: &Job) -> Value {
    let mut args: Vec<String> = ["fleet", "node", "--name-from", "NODE_NAME"]
        .map(str::to_owned)
        .to_vec();
    args.push(format!("--timeout={}", job.timeout));
    args.push("--".into());
    args.extend(job.words.iter().cloned());
    json!({
        "name": "fingerpost",
        "image": job.image,
        "args": args,
        "env": [
            { "name": "NODE_NAME", "valueFrom": { "fieldRef": { "fieldPath": "spec.nodeName" } } },
            { "name": "TMPDIR", "value": "/tmp" },
        ],
        // The image holds the program alone, and a run needs a place to write.
        "volumeMounts": [{ "name": "tmp", "mountPath": "/tmp" }],
    })
}

/// The manifest as kubectl reads it, and as a person can change it: JSON, an item a line.
pub fn text(document: &Value) -> String {
    format!("{document:#}\n")
}

/// What Kubernetes says of its nodes: for each name its host name, or why no pod would get there.
///
/// # Errors
/// A sentence, when the document is no list of nodes.
pub fn nodes_of(
    document: &[u8],
    tolerate: bool,
) -> Result<BTreeMap<String, Result<String, String>>, String> {
    let items = items(document, "nodes")?;
    let one = |node: &Value| {
        let name = node["metadata"]["name"]
            .as_str()
            .filter(|name| nodes::is_name(name))?;
        let host = node["metadata"]["labels"][HOST_NAME]
            .as_str()
            .unwrap_or(name);
        let ready = node["status"]["conditions"]
            .as_array()
            .into_iter()
            .flatten()
            .find(|c| c["type"] == "Ready");
        let taints = node["spec"]["taints"].as_array().into_iter().flatten();
        let keeps = |taint: &&Value| {
            taint["effect"] == "NoExecute" || (taint["effect"] == "NoSchedule" && !tolerate)
        };
        let taint = taints.filter(keeps).find_map(|taint| taint["key"].as_str());
        let state = match (ready.and_then(|c| c["status"].as_str()), taint) {
            _ if node["spec"]["unschedulable"] == true && !tolerate => {
                Err("Kubernetes says that it is cordoned".to_owned())
            }
            (Some("True"), None) => Ok(host.to_owned()),
            (Some("True"), Some(taint)) => Err(format!(
                "Kubernetes says that it has the taint {}",
                clean_short(taint, 80)
            )),
            _ => Err("Kubernetes says that it is not ready".to_owned()),
        };
        Some((name.to_owned(), state))
    };
    Ok(items.iter().filter_map(one).collect())
}

/// A pod of the sweep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pod {
    /// Its name.
    pub name: String,
    /// The node that it is on; nothing while it waits for one.
    pub node: Option<String>,
    /// What became of it.
    pub phase: Phase,
}

/// What became of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Phase {
    /// It waits, with Kubernetes' word for why.
    Waits(String),
    /// It runs.
    Runs,
    /// It has ended; its log says how.
    Ended,
}

/// The pods of a sweep.
///
/// # Errors
/// A sentence, when the document is no list of pods.
pub fn pods_of(document: &[u8]) -> Result<Vec<Pod>, String> {
    let one = |pod: &Value| {
        let name = pod["metadata"]["name"]
            .as_str()
            .filter(|name| nodes::is_name(name))?;
        let node = pod["spec"]["nodeName"]
            .as_str()
            .filter(|node| nodes::is_name(node))
            .map(str::to_owned);
        let phase = match pod["status"]["phase"].as_str() {
            Some("Running") => Phase::Runs,
            Some("Succeeded" | "Failed") => Phase::Ended,
            _ => Phase::Waits(waits_for(&pod["status"])),
        };
        Some(Pod {
            name: name.to_owned(),
            node,
            phase,
        })
    };
    Ok(items(document, "pods")?.iter().filter_map(one).collect())
}

/// Why a pod waits: that its image cannot be fetched, or that no node takes it.
fn waits_for(status: &Value) -> String {
    let containers = status["containerStatuses"].as_array().into_iter().flatten();
    let container = containers
        .map(|c| &c["state"]["waiting"])
        .find(|waiting| waiting["reason"].is_string());
    let conditions = status["conditions"].as_array().into_iter().flatten();
    let said = container.or_else(|| {
        conditions
            .into_iter()
            .find(|c| c["status"] == "False" && c["reason"].is_string())
    });
    let word = |key: &str| {
        said.and_then(|said| said[key].as_str())
            .map(|text| clean_short(text, 120))
    };
    match (word("reason"), word("message")) {
        (Some(reason), Some(message)) => format!("{reason}: {message}"),
        (Some(reason), None) => reason,
        _ => "no reason given".into(),
    }
}

fn items(document: &[u8], what: &str) -> Result<Vec<Value>, String> {
    let mut list: Value = serde_json::from_slice(document)
        .map_err(|e| format!("kubectl's list of {what} is no JSON: {e}"))?;
    match list["items"].take() {
        Value::Array(items) => Ok(items),
        _ => Err(format!("kubectl's list of {what} holds no items")),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use super::*;

    const WORDS: [&str; 3] = [
        "--profile=screen",
        "--set",
        "dir=/tmp/it's \"here\": \\ \u{1b}é",
    ];

    fn made(tolerate: bool) -> Value {
        let (hosts, words) = (
            ["n1", "n2", "n3"].map(str::to_owned),
            WORDS.map(str::to_owned),
        );
        let namespace = tolerate.then_some("perf");
        let job = Job {
            name: "fingerpost-1",
            namespace,
            image: "registry.example/fingerpost:1",
            hosts: &hosts,
            at_once: 2,
            timeout: 900,
            words: &words,
            tolerate,
        };
        manifest(&job)
    }

    /// The published schema of a Job, and of all that it names.
    static SCHEMA: LazyLock<Value> = LazyLock::new(|| {
        serde_json::from_str(include_str!("../testdata/kubernetes-job-1.32.json")).unwrap()
    });

    /// Where a document departs from the published schema, a field that this does not know included. What a field
    /// without a value would mean is not asked: the manifest has none.
    fn departures(manifest: &Value) -> Vec<String> {
        let mut found = Vec::new();
        depart(&SCHEMA["io.k8s.api.batch.v1.Job"], manifest, "", &mut found);
        found
    }

    fn depart(schema: &Value, value: &Value, at: &str, found: &mut Vec<String>) {
        let is = |wanted: &Value| match wanted.as_str().unwrap() {
            "string" => value.is_string(),
            "boolean" => value.is_boolean(),
            "integer" => value.is_u64() || value.is_i64(),
            "number" => value.is_number(),
            "array" => value.is_array(),
            "object" => value.is_object(),
            "null" => false,
            other => panic!("{other} is no type"),
        };
        let (known, others) = (&schema["properties"], &schema["additionalProperties"]);
        for (word, rule) in schema.as_object().unwrap() {
            let holds = match word.as_str() {
                "type" => rule
                    .as_array()
                    .map_or_else(|| is(rule), |any| any.iter().any(is)),
                "enum" => rule.as_array().unwrap().contains(value),
                "format" => {
                    rule != "int32" || value.as_i64().is_some_and(|n| i32::try_from(n).is_ok())
                }
                "required" => rule
                    .as_array()
                    .unwrap()
                    .iter()
                    .all(|name| value.get(name.as_str().unwrap()).is_some()),
                "$ref" | "items" | "properties" | "additionalProperties" => true,
                other => panic!("{at}: the schema's word {other} is not understood"),
            };
            if !holds {
                found.push(format!("{at}: {value} breaks {word} {rule}"));
            }
        }
        if let Some(name) = schema["$ref"].as_str() {
            depart(&SCHEMA[name], value, at, found);
        }
        match value {
            Value::Array(list) if schema["items"].is_object() => {
                list.iter().enumerate().for_each(|(i, below)| {
                    depart(&schema["items"], below, &format!("{at}[{i}]"), found)
                });
            }
            Value::Object(map) if known.is_object() || others.is_object() => {
                for (name, below) in map {
                    match known
                        .get(name)
                        .or(Some(others).filter(|others| others.is_object()))
                    {
                        Some(rule) => depart(rule, below, &format!("{at}.{name}"), found),
                        None => found.push(format!("{at}.{name}: not known")),
                    }
                }
            }
            _ => {}
        }
    }

    #[test]
    fn the_manifest_is_one_by_the_published_schema() {
        for tolerate in [false, true] {
            let manifest = made(tolerate);
            assert_eq!(departures(&manifest), Vec::<String>::new());
            let spec = &manifest["spec"];
            assert_eq!(
                (
                    &spec["completions"],
                    &spec["parallelism"],
                    &spec["completionMode"]
                ),
                (&json!(3), &json!(2), &json!("Indexed"))
            );
            let (labels, pod) = (
                &spec["template"]["metadata"]["labels"],
                &spec["template"]["spec"],
            );
            let apart = &pod["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
                [0];
            assert_eq!(
                &apart["labelSelector"]["matchLabels"], labels,
                "pods of the sweep repel each other"
            );
            assert_eq!(apart["topologyKey"], HOST_NAME);
            assert_eq!(pod["containers"][0]["args"].as_array().unwrap()[6..], WORDS);
        }
    }

    /// Where there is a value, as JSON pointers.
    fn places(value: &Value, at: &str, all: &mut Vec<String>) {
        match value {
            Value::Object(map) => map.iter().for_each(|(name, below)| {
                places(below, &format!("{at}/{}", name.replace('/', "~1")), all)
            }),
            Value::Array(list) => list
                .iter()
                .enumerate()
                .for_each(|(i, below)| places(below, &format!("{at}/{i}"), all)),
            _ => {}
        }
        all.push(at.to_owned());
    }

    #[test]
    fn what_the_schema_does_not_allow_would_be_noticed() {
        let (whole, mut all) = (made(true), Vec::new());
        places(&whole, "", &mut all);
        for at in &all {
            let mut spoilt = whole.clone();
            let value = spoilt.pointer_mut(at).unwrap();
            *value = if value.is_object() {
                json!(true)
            } else {
                json!({ "another": 1 })
            };
            assert!(!departures(&spoilt).is_empty(), "{at} of another type");
            let (parent, name) = at.rsplit_once('/').unwrap_or_default();
            let mut spoilt = whole.clone();
            if let Some(Value::Object(map)) =
                spoilt.pointer_mut(parent).filter(|_| !name.is_empty())
            {
                let value = map.remove(&name.replace("~1", "/")).unwrap();
                map.insert("another".to_owned(), value);
                // A label may have any name.
                assert_eq!(
                    departures(&spoilt).is_empty(),
                    at.contains("abels/"),
                    "{at} by another name"
                );
            }
        }
        assert!(all.len() > 60, "{}", all.len());
        let mut large = whole;
        large["spec"]["completions"] = json!(1_u64 << 31);
        assert_eq!(departures(&large).len(), 1);
    }

    #[test]
    fn nodes_that_take_no_pod_say_why() {
        let node = |name: &str, ready: &str, spec: Value| {
            json!({
                "metadata": { "name": name, "labels": { HOST_NAME: format!("host-{name}") } },
                "spec": spec,
                "status": { "conditions": [
                    { "type": "MemoryPressure", "status": "False" },
                    { "type": "Ready", "status": ready },
                ] },
            })
        };
        let tainted = json!({ "taints": [{ "key": "gpu", "effect": "NoSchedule" }] });
        let cordoned = node("c", "True", json!({ "unschedulable": true }));
        let list = json!({ "items": [node("a", "True", json!({})), node("b", "Unknown", json!({})), cordoned,
            node("d", "True", tainted), node("-e", "True", json!({})), 7] });
        let text = serde_json::to_vec(&list).unwrap();
        let nodes = nodes_of(&text, false).unwrap();
        assert_eq!(nodes["a"], Ok("host-a".to_owned()));
        assert!(
            nodes["b"].as_ref().unwrap_err().contains("not ready")
                && nodes["c"].as_ref().unwrap_err().contains("cordoned")
        );
        assert!(nodes["d"].as_ref().unwrap_err().ends_with("the taint gpu") && nodes.len() == 4);
        assert_eq!(nodes_of(&text, true).unwrap()["d"], Ok("host-d".to_owned()));
        assert!(
            nodes_of(b"{}", false)
                .unwrap_err()
                .contains("holds no items")
                && nodes_of(b"<", false).is_err()
        );
    }

    #[test]
    fn pods_say_where_they_are_and_what_they_wait_for() {
        let list = json!({ "items": [
            { "metadata": { "name": "p1" }, "spec": { "nodeName": "n1" }, "status": { "phase": "Succeeded" } },
            { "metadata": { "name": "p2" }, "spec": {}, "status": { "phase": "Pending", "conditions": [
                { "type": "PodScheduled", "status": "False", "reason": "Unschedulable",
                  "message": "0/3 nodes\u{1b}[1m" }] } },
            { "metadata": { "name": "p3" }, "spec": { "nodeName": "n3" }, "status": { "phase": "Pending",
                "containerStatuses": [{ "state": { "waiting": { "reason": "ErrImagePull" } } }] } },
        ] });
        let pods = pods_of(&serde_json::to_vec(&list).unwrap()).unwrap();
        assert_eq!(
            pods[0],
            Pod {
                name: "p1".into(),
                node: Some("n1".into()),
                phase: Phase::Ended
            }
        );
        assert_eq!(
            pods[1].phase,
            Phase::Waits("Unschedulable: 0/3 nodes\u{fffd}[1m".into())
        );
        assert_eq!(
            (&pods[2].phase, pods[2].node.as_deref()),
            (&Phase::Waits("ErrImagePull".into()), Some("n3"))
        );
    }
}
