//! What the rows of labs mean, for `list NAME` and for whoever hovers over a name on a page.

/// Name of a row's probe, and what its figure is.
pub static ROWS: &[(&str, &str)] = &[
    ("database.throughput", "queries or transactions that all clients together finish in a second, in a closed loop"),
    ("database.latency", "from the sending of a query or transaction to the last byte of its answer"),
    ("database.import", "loading a dump of the data through a client, statement by statement"),
    ("database.desktop", "how long a small task takes from when it is due, beside an idle and beside a loaded server"),
    ("web.throughput", "answers that all connections together receive completely in a second"),
    ("web.latency", "from the sending of a request, or from when it was due, to the last byte of its answer"),
    ("site.round", "reading 100 random pages of the site whole, from files or from an object database"),
    ("site.depth", "reading one page that lies so many folders deep"),
    ("site.size", "reading one page of this size, of a store that holds pages of this size only"),
    ("site.folder", "reading one page of a folder that holds so many entries"),
    ("site.readers", "pages that so many readers at once read in a second"),
    ("site.import", "the time until all pages of the site are in the store and on the disk; for files, a copy of them"),
    ("site.space", "bytes on the disk that the store needs for the site"),
    ("site.served", "requests that this program's web server answers in a second from the store"),
    ("launch.time", "from the start of an application until it is ready, while those launched before it stay"),
    ("launch.sum", "the launch times of all applications of one sequence together"),
    ("launch.pageins", "pages that the system read from swap and files during one sequence"),
];

/// What a row is; nothing where no lab makes it.
pub fn meaning(probe: &str) -> Option<&'static str> {
    ROWS.iter().find(|(name, _)| *name == probe).map(|(_, meaning)| *meaning)
}
