//! The committed JSON Schema is that of the code, and real output conforms to it.

use std::path::{Path, PathBuf};

use fingerpost_record::{Run, fixture};
use serde_json::{Value, json};

fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/run.schema.json")
}

fn committed() -> String {
    std::fs::read_to_string(path()).unwrap()
}

#[test]
fn the_committed_schema_is_that_of_the_code() {
    if std::env::var_os("UPDATE_SCHEMA").is_some() {
        std::fs::write(path(), Run::json_schema()).unwrap();
    }
    assert!(
        committed() == Run::json_schema(),
        "docs/run.schema.json is out of date: run `UPDATE_SCHEMA=1 cargo test -p fingerpost-record --test schema`"
    );
}

#[test]
fn a_run_conforms_to_the_schema() {
    let schema: Value = serde_json::from_str(&committed()).unwrap();
    for run in [fixture::run(), fixture::later_run(), fixture::with_everything()] {
        assert_eq!(conforms(&schema, &schema, &serde_json::to_value(run).unwrap(), "run"), Ok(()));
    }
}

#[test]
fn what_is_no_run_does_not_conform() {
    let schema: Value = serde_json::from_str(&committed()).unwrap();
    let spoils: [fn(&mut Value); 7] = [
        |v| v["duration_s"] = json!("long"),
        |v| v["measurements"][0]["unit"] = json!("furlongs"),
        |v| v["measurements"][0]["outcome"] = json!(3),
        |v| v["measurements"][0]["params"] = json!({"size": 1.5}),
        |v| v["host"]["cpu"]["count"] = json!(-1),
        |v| v["budgets"][0]["parts"] = json!({}),
        |v| {
            v.as_object_mut().unwrap().remove("host");
        },
    ];
    for (i, spoil) in spoils.iter().enumerate() {
        let mut value = serde_json::to_value(fixture::with_everything()).unwrap();
        spoil(&mut value);
        assert!(conforms(&schema, &schema, &value, "run").is_err(), "spoil {i} should not conform");
    }
}

/// Whether a value conforms to a schema, for the keywords that our schema uses. A keyword that is not known here is an error, so that the
/// check cannot pass by not looking.
fn conforms(root: &Value, schema: &Value, value: &Value, at: &str) -> Result<(), String> {
    let Some(keywords) = schema.as_object() else {
        return if schema == &json!(true) { Ok(()) } else { Err(format!("{at}: nothing may stand here")) };
    };
    keywords.iter().try_for_each(|(keyword, rule)| keyword_holds(root, keywords, keyword, rule, value, at))
}

fn keyword_holds(
    root: &Value,
    all: &serde_json::Map<String, Value>,
    keyword: &str,
    rule: &Value,
    value: &Value,
    at: &str,
) -> Result<(), String> {
    let check = |schema: &Value, value: &Value, at: &str| conforms(root, schema, value, at);
    let no = |what: &str| Err(format!("{at}: {value} {what} {rule}"));
    let rules = || rule.as_array().expect("an array of schemas");
    match keyword {
        "$schema" | "$defs" | "title" | "description" | "default" => Ok(()),
        "$ref" => {
            let pointer = rule.as_str().and_then(|r| r.strip_prefix('#')).expect("a reference into this schema");
            check(root.pointer(pointer).expect("the reference leads somewhere"), value, at)
        }
        "type" => {
            let kinds = rule.as_array().cloned().unwrap_or_else(|| vec![rule.clone()]);
            if kinds.iter().any(|k| is_of(value, k.as_str().unwrap())) { Ok(()) } else { no("is not of type") }
        }
        "const" => {
            if value == rule {
                Ok(())
            } else {
                no("is not")
            }
        }
        "enum" => {
            if rules().contains(value) {
                Ok(())
            } else {
                no("is none of")
            }
        }
        "oneOf" => {
            if rules().iter().filter(|r| check(r, value, at).is_ok()).count() == 1 {
                Ok(())
            } else {
                no("is not exactly one of")
            }
        }
        "anyOf" => {
            if rules().iter().any(|r| check(r, value, at).is_ok()) {
                Ok(())
            } else {
                no("is none of")
            }
        }
        "minimum" => {
            if value.as_f64().is_none_or(|v| v >= rule.as_f64().unwrap()) {
                Ok(())
            } else {
                no("is less than")
            }
        }
        "maximum" => {
            if value.as_f64().is_none_or(|v| v <= rule.as_f64().unwrap()) {
                Ok(())
            } else {
                no("is more than")
            }
        }
        "format" => match rule.as_str().unwrap() {
            "double" | "int32" | "int64" | "uint32" | "uint64" | "uint" => Ok(()),
            other => panic!("the format {other} is not known to this check"),
        },
        "required" => match rules().iter().find(|name| value.is_object() && value.get(name.as_str().unwrap()).is_none()) {
            Some(name) => Err(format!("{at}: {name} is missing")),
            None => Ok(()),
        },
        "properties" => {
            let known = rule.as_object().unwrap();
            known.iter().try_for_each(|(name, schema)| value.get(name).map_or(Ok(()), |v| check(schema, v, &format!("{at}.{name}"))))
        }
        "additionalProperties" => {
            let known = |name: &str| all.get("properties").and_then(|p| p.get(name)).is_some();
            value.as_object().into_iter().flatten().filter(|(n, _)| !known(n)).try_for_each(|(n, v)| check(rule, v, &format!("{at}.{n}")))
        }
        "prefixItems" => {
            let pairs = rules().iter().zip(value.as_array().into_iter().flatten());
            pairs.enumerate().try_for_each(|(i, (r, v))| check(r, v, &format!("{at}[{i}]")))
        }
        "items" => {
            let skip = all.get("prefixItems").and_then(Value::as_array).map_or(0, Vec::len);
            value.as_array().into_iter().flatten().enumerate().skip(skip).try_for_each(|(i, v)| check(rule, v, &format!("{at}[{i}]")))
        }
        "minItems" => {
            if value.as_array().is_none_or(|a| a.len() as u64 >= rule.as_u64().unwrap()) {
                Ok(())
            } else {
                no("is shorter than")
            }
        }
        "maxItems" => {
            if value.as_array().is_none_or(|a| a.len() as u64 <= rule.as_u64().unwrap()) {
                Ok(())
            } else {
                no("is longer than")
            }
        }
        other => panic!("the keyword {other} is not known to this check"),
    }
}

fn is_of(value: &Value, kind: &str) -> bool {
    match kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64(),
        other => panic!("the type {other} is not known to this check"),
    }
}
