//! Which processes are watched: what whoever starts them tells whoever watches.

/// The name of a load generator's thread that watches the others. It works on no transaction, and observers leave it
/// out.
pub const WATCHER: &str = "fp-watcher";

/// The processes of a workload, for observers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Subjects {
    /// The server's processes (its children are found by the observer). Their threads' time is what a budget takes
    /// apart.
    pub servers: Vec<i32>,
    /// The load generator's processes.
    pub clients: Vec<i32>,
}
