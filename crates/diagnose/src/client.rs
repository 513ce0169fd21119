//! A service here and the load generator that asked it from another machine: two accounts of the same requests, each by
//! its own clock, joined in one record, and what the difference says.
//!
//! Round trips are not matched one by one: nothing in them is known to both sides. What is compared is how many there
//! were and their mean. Means may be subtracted, quantiles may not, so that quantiles only stand beside each other.

use fingerpost_measure::doubt::spoil;
use fingerpost_record::client::{CLIENT, WORKLOAD, machine, source};
use fingerpost_record::unstated::DESCRIBED;
use fingerpost_record::{Observation, Params, Paths, Run, Unit};
use serde::Serialize;

use crate::step::STEP;

/// The workload of a record that has a running service.
const SERVICE: &str = "service";
/// The two rates of one load may differ by this factor, beside what recording makes: the service is watched in windows,
/// and the load goes on before and after.
const SAME_LOAD: f64 = 1.25;
/// Up to this difference of the rates the windows were like the rest of the load, and the client's mean is that of
/// their requests, too.
const LIKE_THE_REST: f64 = 0.05;
/// The part of the shorter of the two times that both must have.
const OVERLAP: f64 = 0.5;
/// What clocks of machines that keep time may be apart, in seconds, with the whole seconds in which a record tells its
/// start.
const APART: f64 = 2.0;

/// What the load generator saw beside what the service's sockets saw. All times in seconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Beside {
    /// The load generator and its machine, in words.
    pub who: String,
    /// Round trips a second by the client's account.
    pub rate: f64,
    /// Their mean by the client's clock.
    pub mean: f64,
    /// Requests a second at the service's sockets.
    pub served_rate: f64,
    /// Their mean there.
    pub served_mean: f64,
    /// How long a round trip took while the service was watched, by how many clients there are and how many requests
    /// came then; nothing where the client's mean tells it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub while_watched: Option<f64>,
    /// What of a round trip passed outside of the service; nothing where the two are not of the same requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outside: Option<f64>,
    /// The least that the network itself took, there and back, as TCP measured it; nothing where it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<f64>,
    /// Whether the load generator said in most repetitions that it was the limit itself.
    pub saturated: bool,
    /// The answer, as one sentence.
    pub sentence: String,
    /// What is known besides, a sentence each.
    pub notes: Vec<String>,
}

/// The observation of a load generator in a run.
fn account(observations: &[Observation]) -> Option<&Observation> {
    observations
        .iter()
        .find(|o| o.workload == WORKLOAD && o.observer == CLIENT)
}

/// Puts what a load generator saw into the run of the service that it loaded. What an earlier one had put there goes.
///
/// # Errors
/// A sentence: one of the two is something else, or they are not of the same time.
pub fn join(server: &mut Run, begun_s: f64, client: &Run) -> Result<(), String> {
    let Some(theirs) = account(&client.observations) else {
        let id = &client.id;
        return Err(format!(
            "the run {id} is not one of a load generator; `fingerpost load SERVER -o FILE` makes one"
        ));
    };
    if !server.observations.iter().any(|o| o.workload == SERVICE) {
        let id = &server.id;
        return Err(format!(
            "the run {id} is not one of a running service; `fingerpost explain --port N` makes one"
        ));
    }
    if !client.complete {
        return Err(format!("the load of the run {} did not end", client.id));
    }
    same_time((begun_s, begun_s + server.duration_s), span(theirs)?)?;
    server.observations.retain(|o| o.workload != WORKLOAD);
    server
        .measurements
        .retain(|m| !m.probe.starts_with("load."));
    server.measurements.extend(
        client
            .measurements
            .iter()
            .filter(|m| m.probe.starts_with("load."))
            .cloned(),
    );
    let of_server = theirs
        .source
        .strip_prefix(DESCRIBED)
        .unwrap_or(&theirs.source);
    let source = source(&machine(&client.host), of_server);
    server.observations.push(Observation {
        source,
        ..theirs.clone()
    });
    tell_the_step(server, theirs);
    Ok(())
}

fn span(of: &Observation) -> Result<(f64, f64), String> {
    let at = |name: &str| of.totals.get(name).copied().filter(|s| s.is_finite());
    at("begun.unix.seconds")
        .zip(at("ended.unix.seconds"))
        .ok_or_else(|| "the load generator's run does not say when it was".to_owned())
}

fn same_time(server: (f64, f64), client: (f64, f64)) -> Result<(), String> {
    let common = server.1.min(client.1) - server.0.max(client.0) + APART;
    let shorter = (server.1 - server.0).min(client.1 - client.0);
    if common >= OVERLAP * shorter {
        return Ok(());
    }
    let apart = if client.0 >= server.1 {
        client.0 - server.1
    } else {
        server.0 - client.1
    };
    Err(if apart > 0.0 {
        let order = if client.0 >= server.1 {
            "after"
        } else {
            "before"
        };
        format!(
            "the load was {apart:.0} s {order} the service was watched, by the clocks of the two machines; run both at \
             the same time, and see that the clocks agree"
        )
    } else {
        format!(
            "the service was watched for {:.0} s, of which the load lasted {common:.0} s only; let the load last \
             longer",
            server.1 - server.0
        )
    })
}

/// What the client said of itself is what the cause `client.saturated` is judged by.
fn tell_the_step(server: &mut Run, theirs: &Observation) {
    let Some(step) = server
        .observations
        .iter_mut()
        .find(|o| o.workload == SERVICE && o.observer == STEP)
    else {
        return;
    };
    let errors: f64 = theirs
        .totals
        .iter()
        .filter(|(name, _)| name.starts_with("error"))
        .map(|(_, n)| n)
        .sum();
    let cpus = theirs.totals.get("load.cpus").copied().unwrap_or(1.0);
    step.totals.insert(
        "step.client.saturated".into(),
        f64::from(u8::from(was_saturated(theirs))),
    );
    step.totals.insert("step.client.errors".into(), errors);
    step.totals.insert("step.client.cpus".into(), cpus);
}

fn was_saturated(of: &Observation) -> bool {
    let total = |name: &str| of.totals.get(name).copied().unwrap_or(0.0) as u64;
    spoil(total("load.saturated"), total("load.repetitions"))
}

/// What both sides saw; nothing where a run has not both.
pub fn beside(run: &Run) -> Option<Beside> {
    let theirs = account(&run.observations)?;
    let paths = run
        .paths
        .iter()
        .find(|p| p.workload == SERVICE && p.followed > 0 && p.seconds > 0.0)?;
    let total = |name: &str| {
        theirs
            .totals
            .get(name)
            .copied()
            .filter(|v| v.is_finite() && *v > 0.0)
    };
    let (seconds, turns, mean) = (
        total("load.seconds")?,
        total("load.turns")?,
        total("load.turn.mean.seconds")?,
    );
    let (rate, served_rate, served_mean) = (
        turns / seconds,
        paths.requests() / paths.seconds,
        paths.latency.mean,
    );
    // Whether the requests at the service can be those of the load generator: recording events in a window makes each
    // of them longer, by that much where nothing waits for it, and all clients by that much where they wait for each
    // other.
    let slowed = 1.0 + rate * paths.recording();
    let same = (rate / slowed / SAME_LOAD..=rate * SAME_LOAD).contains(&served_rate);
    let while_watched = while_watched(&theirs.params, mean, rate, served_rate).filter(|_| same);
    let trip = while_watched.unwrap_or(mean);
    let mut told = Beside {
        who: theirs.source.clone(),
        rate,
        mean,
        served_rate,
        served_mean,
        while_watched,
        outside: (same && trip >= served_mean).then_some(trip - served_mean),
        network: total("load.network.least.seconds"),
        saturated: was_saturated(theirs),
        sentence: String::new(),
        notes: vec![both_rates(rate, mean, paths)],
    };
    told.sentence = match told.outside {
        Some(outside) => of_a_round_trip(&told, trip, outside),
        None => format!(
            "What passed outside of the service is not told: {}.",
            why_not(rate, served_rate, same)
        ),
    };
    let limit = "the client was the limit itself in most of its repetitions: the service could have answered more";
    told.notes.extend(told.saturated.then(|| limit.to_owned()));
    Some(told)
}

/// The time of a round trip in the windows by Little's law: each client waits for its answer, then takes as long for
/// the next request as it does in the rest of the load. Nothing where the windows were like that, or requests come at a
/// rate that was asked for.
fn while_watched(params: &Params, mean: f64, rate: f64, served_rate: f64) -> Option<f64> {
    let clients = params.asking().filter(|(n, _)| *n > 0)?.0 as f64;
    let between = (clients / rate - mean).max(0.0);
    let differs = (rate / served_rate - 1.0).abs() > LIKE_THE_REST;
    (differs && params.get("rate").is_none() && between < mean)
        .then(|| clients / served_rate - between)
}

fn time(seconds: f64) -> String {
    Unit::Nanoseconds.format(seconds * 1e9)
}

/// What a round trip's time was spent on, of which so much passed outside of the service.
fn of_a_round_trip(told: &Beside, trip: f64, outside: f64) -> String {
    let by = match told.while_watched {
        Some(_) => format!(
            "while it was watched ({} over the whole load)",
            time(told.mean)
        ),
        None => "by the client's clock".to_owned(),
    };
    let network = told.network.map_or(String::new(), |least| {
        format!(
            ", where the network alone takes {} at least",
            time(least.min(outside))
        )
    });
    let share = 100.0 * told.served_mean / trip;
    let [trip, served, outside] = [trip, told.served_mean, outside].map(time);
    format!(
        "Of a round trip's {trip} {by} the service had {served} ({share:.0} %); {outside} passed outside of it: in the \
         network, in both machines' kernels, in the client{network}."
    )
}

fn both_rates(rate: f64, mean: f64, paths: &Paths) -> String {
    let (served, recorded, latency) = (
        paths.requests() / paths.seconds,
        recorded(paths),
        &paths.latency,
    );
    let [mean, of_served, p50, p99] = [mean, latency.mean, latency.p50, latency.p99].map(time);
    format!(
        "client: {rate:.0} round trips a second, mean {mean}; service: {served:.0} requests a second{recorded}, mean \
         {of_served}, median {p50}, 99 % within {p99}"
    )
}

/// What recording makes of the rate at the service, where that is worth telling.
fn recorded(paths: &Paths) -> String {
    let told = |cost: f64| format!(" while it was watched, which takes {} for each", time(cost));
    paths.noticeable_recording().map_or(String::new(), told)
}

fn why_not(rate: f64, served: f64, same: bool) -> String {
    if same {
        return "its requests took longer there than round trips by the client's clock, so that they are not the same \
            ones"
            .to_owned();
    }
    let share = 100.0 * rate / served;
    if rate < served {
        format!(
            "the load generator made {share:.0} % of the {served:.0} requests a second that came; others ask it too"
        )
    } else {
        format!(
            "{served:.0} requests a second were seen at the service in the windows in which it was watched, of \
             {rate:.0} that the load generator had answered over its whole time"
        )
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use fingerpost_record::fixture::followed;
    use fingerpost_record::{Better, Params, Unit};

    use super::*;

    fn observation(workload: &str, observer: &str, totals: &[(&str, f64)]) -> Observation {
        Observation {
            workload: workload.into(),
            params: Params::new(),
            observer: observer.into(),
            source: "made up".into(),
            series: Vec::new(),
            totals: totals.iter().map(|(k, v)| ((*k).to_owned(), *v)).collect(),
            self_cost: 0.0,
            lost: 0,
        }
    }

    /// A service watched for ten seconds from 1000 on, 500 requests a second of a mean of 1 ms.
    fn service() -> Run {
        let mut paths = followed::slow_locks().paths.remove(0);
        paths.workload = SERVICE.into();
        (paths.followed, paths.cut, paths.seconds, paths.latency.mean) = (500, 0, 1.0, 1e-3);
        let observations = vec![observation(SERVICE, STEP, &[("step.transactions", 5000.0)])];
        Run {
            id: "server".into(),
            duration_s: 10.0,
            observations,
            paths: vec![paths],
            ..Run::default()
        }
    }

    /// A load of so many round trips a second, each of a mean of so many seconds, from `begun` on for 20 s.
    fn load(begun: f64, rate: f64, mean: f64, saturated: f64) -> Run {
        let totals = [
            ("begun.unix.seconds", begun),
            ("ended.unix.seconds", begun + 20.0),
            ("load.seconds", 20.0),
            ("load.turns", rate * 20.0),
            ("load.turn.mean.seconds", mean),
            ("load.network.least.seconds", 2e-4),
            ("load.repetitions", 6.0),
            ("load.saturated", saturated),
            ("load.cpus", 4.0),
            ("errors.deadlock", 3.0),
        ];
        let row = fingerpost_record::fixture::row(
            "load.turns",
            Params::new(),
            Unit::PerSecond,
            Better::Higher,
        );
        let host = fingerpost_record::Host {
            hostname: "client-1".into(),
            ..Default::default()
        };
        let observations = vec![observation(WORKLOAD, CLIENT, &totals)];
        Run {
            id: "client".into(),
            complete: true,
            host,
            observations,
            measurements: vec![row],
            ..Run::default()
        }
    }

    fn joined(begun: f64, rate: f64, mean: f64) -> Beside {
        let mut run = service();
        join(&mut run, 1000.0, &load(begun, rate, mean, 0.0)).unwrap();
        beside(&run).unwrap()
    }

    #[test]
    fn what_passed_outside_is_the_difference_of_the_means() {
        let found = joined(995.0, 480.0, 1.6e-3);
        assert!((found.outside.unwrap() - 0.6e-3).abs() < 1e-12 && !found.saturated);
        assert!(
            found.sentence.contains("1.600 ms")
                && found.sentence.contains("(62 %)")
                && found.sentence.contains("200.0 µs"),
            "{found:?}"
        );
        assert!(
            found.who.contains("client-1") && found.notes.len() == 1,
            "{found:?}"
        );
    }

    #[test]
    fn two_loads_are_not_subtracted() {
        let others = joined(995.0, 100.0, 1.6e-3);
        assert!(
            others.outside.is_none() && others.sentence.contains("made 20 % of the 500"),
            "{}",
            others.sentence
        );
        let unseen = joined(995.0, 2000.0, 1.6e-3);
        assert!(
            unseen.outside.is_none() && unseen.sentence.contains("500 requests a second were seen"),
            "{}",
            unseen.sentence
        );
        let faster = joined(995.0, 500.0, 0.9e-3);
        assert!(
            faster.outside.is_none() && faster.sentence.contains("not the same ones"),
            "{}",
            faster.sentence
        );
    }

    /// A web server of which a request takes 22 µs: what recording adds makes it slower by a quarter while it is
    /// watched.
    #[test]
    fn a_service_that_is_slower_while_it_is_watched_has_the_same_load() {
        let of = |event_cost: f64, connections: Option<i64>| {
            let (mut run, mut client) = (service(), load(995.0, 45_650.0, 86.58e-6, 0.0));
            let paths = &mut run.paths[0];
            (
                paths.followed,
                paths.latency.mean,
                paths.events,
                paths.event_cost,
            ) = (35_898, 91.38e-6, 28 * 35_898, event_cost);
            client.observations[0].params =
                connections.map_or(Params::new(), |n| Params::new().with("connections", n));
            join(&mut run, 1000.0, &client).unwrap();
            beside(&run).unwrap()
        };
        let found = of(0.22e-6, Some(4));
        // Four connections at 35,898 a second are 111.4 µs, of which the client has 1.0 µs between two requests.
        let trip = found.while_watched.unwrap();
        assert!((trip - 110.38e-6).abs() < 0.05e-6, "{trip}");
        assert!(
            (found.outside.unwrap() - 19.0e-6).abs() < 0.1e-6,
            "{found:?}"
        );
        assert!(
            found
                .sentence
                .contains("while it was watched (86.58 µs over the whole load)"),
            "{}",
            found.sentence
        );
        assert!(
            found.notes[0].contains("while it was watched, which takes 6.160 µs for each"),
            "{}",
            found.notes[0]
        );
        // Without a cost of recording, or with one that does not explain it, requests are missing.
        for cost in [0.0, 0.001e-6] {
            let unseen = of(cost, Some(4));
            assert!(
                unseen.outside.is_none() && unseen.sentence.contains("of 45650 that"),
                "{}",
                unseen.sentence
            );
        }
        // Who does not say how many ask is told by the means alone, which are of different times here.
        assert!(of(0.22e-6, None).sentence.contains("not the same ones"));
    }

    #[test]
    fn they_must_be_of_one_time_by_their_clocks() {
        let at = |begun: f64| join(&mut service(), 1000.0, &load(begun, 500.0, 1.6e-3, 0.0));
        assert!(
            at(1100.0)
                .unwrap_err()
                .contains("90 s after the service was watched")
        );
        assert!(
            at(900.0)
                .unwrap_err()
                .contains("80 s before the service was watched")
        );
        assert!(at(982.0).unwrap_err().contains("let the load last longer"));
        assert!(at(1004.0).is_ok() && at(985.0).is_ok());
    }

    #[test]
    fn joining_again_puts_the_new_load_in_the_place_of_the_old_and_the_client_is_believed_about_itself()
     {
        let mut run = service();
        for _ in 0..2 {
            join(&mut run, 1000.0, &load(995.0, 500.0, 1.6e-3, 5.0)).unwrap();
        }
        assert_eq!((run.observations.len(), run.measurements.len()), (2, 1));
        let step: &BTreeMap<String, f64> = &run.observations[0].totals;
        assert_eq!(
            (
                step["step.client.saturated"],
                step["step.client.errors"],
                step["step.client.cpus"]
            ),
            (1.0, 3.0, 4.0)
        );
        let found = beside(&run).unwrap();
        assert!(
            found.saturated && found.notes[1].contains("the limit itself"),
            "{found:?}"
        );
    }

    #[test]
    fn what_is_no_such_run_is_told() {
        let client = load(995.0, 500.0, 1e-3, 0.0);
        assert!(
            join(&mut service(), 1000.0, &service())
                .unwrap_err()
                .contains("not one of a load generator")
        );
        assert!(
            join(&mut client.clone(), 1000.0, &client)
                .unwrap_err()
                .contains("not one of a running service")
        );
        let broken = Run {
            complete: false,
            ..client
        };
        assert!(
            join(&mut service(), 1000.0, &broken)
                .unwrap_err()
                .contains("did not end")
        );
        assert_eq!(beside(&service()), None);
    }
}
