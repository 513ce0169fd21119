//! A desktop's tasks beside a loaded server, figure by figure. What half of their turns take, and 99 of 100, the rows
//! have themselves.

use crate::desktop::analysis::Desktop;
use fingerpost_record::Run;

use fingerpost_report::lab::derived::{COUNT, Derived, NS, Of, RATIO, table_of, told};

/// The longest turn and the missed ones of each side, and how many times as long the middle turn takes beside the
/// load, in its least and its most by the rows' intervals. They stand in the table of the rows.
pub fn derived(run: &Run, found: &[Desktop]) -> Vec<Derived> {
    let mut all = Vec::new();
    for desktop in found {
        let table = table_of(run, &desktop.probe);
        let of = Of(&table);
        let name = |what: &str| format!("{}_{what}", desktop.probe);
        for task in &desktop.tasks {
            for (load, turns) in [("idle", &task.idle), ("most", &task.loaded)] {
                let params = || told(&desktop.params, [("load", &load), ("task", &task.name)]);
                all.push(of.exact(name("worst"), params(), NS, turns.worst));
                all.push(of.exact(name("missed"), params(), COUNT, turns.missed));
            }
            let certain = !task.idle.doubtful && !task.loaded.doubtful;
            all.extend(
                task.times
                    .filter(|_| certain)
                    .map(|(value, least, most)| Derived {
                        interval: Some([least, most]),
                        ..of.exact(
                            name("times"),
                            told(&desktop.params, [("task", &task.name)]),
                            RATIO,
                            value,
                        )
                    }),
            );
        }
    }
    all
}
