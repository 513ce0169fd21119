//! What two runs side by side are found to say, by the crate's public interface: rows, statistics, causes, conclusions,
//! imports.

mod articles;
mod causes_by_who;
mod causes_not_observed;
mod causes_of_older_records;
mod causes_of_probes;
mod causes_of_workloads;
mod cells;
mod changes;
mod few_runs;
mod headlines;
mod hostile_imports;
mod runs;
mod settled;
mod statistics;
