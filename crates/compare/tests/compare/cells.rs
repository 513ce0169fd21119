//! Every cell of every published table, transcribed a second time from the documents and as they print it, against what
//! the binary carries. Nothing here reads the data files' own text: two transcriptions must agree.

use std::collections::BTreeMap;

use fingerpost_compare::references;
use fingerpost_record::{Params, Run, Unit};

/// A line of a table: the system that it is about, and the cells as the document prints them.
struct Line {
    system: &'static str,
    cells: &'static str,
}

const fn line(system: &'static str, cells: &'static str) -> Line {
    Line { system, cells }
}

/// A probe with its parameters, written `probe key=value key=value`.
fn column(text: &str) -> (String, Params) {
    let mut words = text.split(' ');
    let probe = words.next().unwrap().to_owned();
    let params = words.fold(Params::new(), |params, pair| {
        let (key, value) = pair.split_once('=').unwrap();
        params.with(key, fingerpost_record::Param::parse(value))
    });
    (probe, params)
}

fn load(system: &str) -> Run {
    references::load(system).unwrap_or_else(|| panic!("{system}"))
}

/// Holds lines of cells against the runs; `scale` makes the printed unit the record's. Counts the cells in `seen`.
fn hold(
    columns: &[&str],
    unit: Unit,
    scale: f64,
    lines: &[Line],
    seen: &mut BTreeMap<String, usize>,
) {
    for Line { system, cells } in lines {
        let run = load(system);
        let cells: Vec<&str> = cells.split_whitespace().collect();
        assert_eq!(cells.len(), columns.len(), "{system}: {cells:?}");
        for (text, cell) in columns.iter().zip(cells) {
            let (probe, params) = column(text);
            let row = run
                .row(&probe, &params)
                .unwrap_or_else(|| panic!("{system} has no {text}"));
            let printed: f64 = cell.replace(',', ".").parse().unwrap();
            let carried = row.estimate.unwrap();
            assert_eq!(row.unit, unit, "{system} {text}");
            assert!(
                (carried.value / (printed * scale) - 1.0).abs() < 1e-12,
                "{system} {text}: printed {cell}, carried {}",
                carried.value
            );
            *seen.entry((*system).to_owned()).or_default() += 1;
        }
    }
}

fn totals<'a>(run: &'a Run, observer: &str) -> &'a BTreeMap<String, f64> {
    &run.observations
        .iter()
        .find(|o| o.observer == observer)
        .unwrap_or_else(|| panic!("{} has no {observer}", run.id))
        .totals
}

const SYSTEMS: [&str; 4] = [
    "g5-2.7-darwin",
    "g5-2.5-linux",
    "xeon-3.6-linux",
    "opteron-850-linux",
];

/// “fork hndl, exec proc, sh proc”, “Null … sig inst” and “Pipe … TCP conn”; each line with the clock that it prints.
#[test]
fn lmbench() {
    let mut seen = BTreeMap::new();
    let process = [
        line(SYSTEMS[0], "659 2308 4960"),
        line(SYSTEMS[1], "182 748 2259"),
        line(SYSTEMS[2], "158 467 2688"),
        line(SYSTEMS[3], "125 471 2393"),
    ];
    // lmbench's program is linked dynamically, and its process has touched little memory.
    hold(
        &[
            "process.fork resident=0",
            "process.exec_dynamic",
            "process.shell",
        ],
        Unit::Nanoseconds,
        1e3,
        &process,
        &mut seen,
    );
    let calls = [
        line(SYSTEMS[0], "1.13 1.91 4.64 8.6 21.9 1.67 6.2"),
        line(SYSTEMS[1], "0.14 0.26 3.41 4.16 18.9 0.38 1.9"),
        line(SYSTEMS[2], "0.19 0.25 2.3 2.88 9.0 0.28 2.7"),
        line(SYSTEMS[3], "0.08 0.17 2.11 2.69 12.4 0.17 1.14"),
    ];
    let columns = [
        "syscall.null",
        "lmbench.null_io",
        "syscall.stat",
        "syscall.open_close",
        "syscall.select fds=100",
        "signal.install",
        "signal.handle",
    ];
    hold(&columns, Unit::Nanoseconds, 1e3, &calls, &mut seen);
    let ipc = [
        line(SYSTEMS[0], "9.496 13.1 34.8 44.5 61"),
        line(SYSTEMS[1], "11.6 16.4 19.1 19.6 34"),
        line(SYSTEMS[2], "9.909 19.0 16.0 19.3 40"),
        line(SYSTEMS[3], "7.645 11.2 14.2 15.9 24"),
    ];
    hold(
        &[
            "ipc.pipe",
            "ipc.unix",
            "ipc.udp",
            "ipc.tcp",
            "ipc.tcp_connect",
        ],
        Unit::Nanoseconds,
        1e3,
        &ipc,
        &mut seen,
    );
    assert!(SYSTEMS.iter().all(|s| seen[*s] == 15), "{seen:?}");
    for (system, clock) in SYSTEMS.iter().zip([2700.0, 2500.0, 3585.0, 2404.0]) {
        assert_eq!(load(system).host.cpu.mhz, Some(clock), "{system}");
    }
}

/// The scaling table with its percentages as printed, of which two do not follow from the figures beside them.
#[test]
fn mysql() {
    let table = [
        ("1", "192 100% 228 100% 290 100%"),
        ("2", "274 143% 349 153% 438 151%"),
        ("5", "113 59% 411 180% 543 187%"),
        ("10", "62 32% 443 194% 629 217%"),
        ("20", "50 26% 439 193% 670 231%"),
        ("35", "50 26% 422 185% 650 224%"),
        ("50", "47 25% 414 182% 669 230%"),
    ];
    let systems = ["g5-2.7-darwin", "g5-2.5-linux", "opteron-850-linux"];
    let mut misprints = Vec::new();
    let mut cells = 0;
    for (clients, text) in table {
        let words: Vec<f64> = text
            .split(' ')
            .map(|w| w.trim_end_matches('%').parse().unwrap())
            .collect();
        for (system, pair) in systems.iter().zip(words.chunks(2)) {
            let run = load(system);
            let of = |clients: &str| {
                let params = column(&format!(
                    "x engine=mysql storage=myisam mix=read query_cache=off clients={clients}"
                ))
                .1;
                run.row("database.throughput", &params)
                    .unwrap_or_else(|| panic!("{system} {clients}"))
                    .estimate
                    .unwrap()
                    .value
            };
            assert_eq!(of(clients), pair[0], "{system} {clients}");
            let percent = totals(&run, "the table's percentages, as printed")
                [&format!("clients{:02}.percent", clients.parse::<i64>().unwrap())];
            assert_eq!(percent, pair[1], "{system} {clients}");
            if (of(clients) / of("1") * 100.0).round() != percent {
                misprints.push((*system, clients, percent));
                let marked = run
                    .host
                    .doubts
                    .iter()
                    .any(|d| d.contains(&format!("prints {percent} % for {clients} clients")));
                assert!(marked, "{system}: the misprint is marked");
            }
            cells += 2;
        }
    }
    assert_eq!(cells, 7 * 6);
    assert_eq!(
        misprints,
        [
            ("g5-2.7-darwin", "50", 25.0),
            ("opteron-850-linux", "50", 230.0)
        ]
    );
}

/// “Unit: Requests per second”.
#[test]
fn apache() {
    let columns = [
        "web.throughput server=apache-1.3 keepalive=off connections=100",
        "web.throughput server=apache-2.0 keepalive=off connections=100",
    ];
    let lines = [
        line("g5-2.7-darwin", "250 266"),
        line("g5-2.5-linux", "709 2165"),
        line("xeon-3.6-linux", "1291 3410"),
    ];
    hold(&columns, Unit::PerSecond, 1.0, &lines, &mut BTreeMap::new());
}

/// What the text of the article gives in figures besides its tables.
#[test]
fn mysql_in_the_text() {
    let darwin = load("g5-2.7-darwin");
    let notes = totals(&darwin, "the article's text");
    assert_eq!(
        (
            notes["skip_locking.gain.low.percent"],
            notes["skip_locking.gain.high.percent"]
        ),
        (1.0, 3.0)
    );
    assert_eq!(
        (
            notes["import.times_longer.most"],
            notes["query_cache.hits.most.percent"]
        ),
        (8.0, 60.0)
    );
    assert_eq!(notes["query_cache.per_client_machine.queries_s"], 1000.0);
    let cached = |system: &str| {
        let params = column("x engine=mysql storage=myisam mix=read query_cache=on").1;
        load(system)
            .row("database.throughput", &params)
            .and_then(|r| r.estimate)
            .map(|e| e.value)
    };
    assert_eq!(
        SYSTEMS.map(cached),
        [Some(500.0), None, Some(2700.0), Some(2700.0)]
    );
    let watched = totals(&darwin, "the authors' profiling");
    for (name, printed) in [
        ("net.in.mbit_s", 4.0),
        ("net.out.mbit_s", 19.0),
        ("net.link.mbit_s", 1000.0),
        ("disk.written.bytes_s", 23_000.0),
        ("disk.written.at.queries_s", 274.0),
        ("cpu.used.low", 1.65),
        ("cpu.used.high", 1.90),
        ("cpu.count", 2.0),
    ] {
        assert_eq!(watched[name], printed, "{name}");
    }
    // The peak of 140 Mbit/s belongs to 500 to 600 queries a second, which neither G5 reaches.
    for g5 in ["g5-2.7-darwin", "g5-2.5-linux"] {
        let run = load(g5);
        let watched = totals(&run, "the authors' profiling");
        assert!(
            !watched.contains_key("net.out.peak.mbit_s")
                && watched["net.out.peak.below.mbit_s"] == 140.0,
            "{g5}"
        );
        assert!(
            run.measurements
                .iter()
                .filter(|m| m.params.text("query_cache") == Some("off"))
                .all(|m| m.estimate.unwrap().value < 500.0)
        );
    }
    let opteron = load("opteron-850-linux");
    let watched = totals(&opteron, "the authors' profiling");
    let peak = [
        "net.out.peak.mbit_s",
        "net.out.peak.from.queries_s",
        "net.out.peak.to.queries_s",
    ]
    .map(|name| watched[name]);
    assert_eq!(peak, [140.0, 500.0, 600.0]);
}

/// “MOD FADD FSUB FMUL FDIV” and five columns of MFLOPS.
#[test]
fn flops() {
    let systems = [
        "flops-g5-2.7-gcc-4.0",
        "flops-g5-2.7-gcc-3.3",
        "flops-g5-2.5-gcc-3.3",
        "flops-opteron-2.4-gcc-3.3.3",
        "flops-opteron-2.4-gcc-4.0",
    ];
    let table = [
        "1 50% 0% 43% 7% 1158 1104 1026 1404 1319",
        "2 43% 29% 14% 14% 607 665 618 844 695",
        "3 35% 12% 53% 0% 3047 2890 2677 1955 1866",
        "4 47% 0% 53% 0% 1583 522 486 1856 1850",
        "5 45% 0% 52% 3% 1418 675 628 1831 1362",
        "6 45% 0% 55% 0% 2163 915 851 1922 1698",
        "7 25% 25% 25% 25% 546 284 265 562 502",
        "8 43% 0% 57% 0% 2020 925 860 1989 1703",
        "average - - - - 1568 998 926 1545 1374",
    ];
    for text in table {
        let words: Vec<&str> = text.split(' ').collect();
        for (system, cell) in systems.iter().zip(&words[5..]) {
            let run = load(system);
            let (probe, params) = column(&format!("cpu.flops module={}", words[0]));
            let value = run
                .row(&probe, &params)
                .unwrap_or_else(|| panic!("{system} {}", words[0]))
                .estimate
                .unwrap()
                .value;
            assert_eq!(
                value,
                cell.parse::<f64>().unwrap() * 1e6,
                "{system} module {}",
                words[0]
            );
            for (kind, share) in ["fadd", "fsub", "fmul", "fdiv"]
                .iter()
                .zip(&words[1..5])
                .filter(|(_, share)| **share != "-")
            {
                let carried =
                    totals(&run, "instruction mix")[&format!("module{}.{kind}.percent", words[0])];
                assert_eq!(
                    carried,
                    share.trim_end_matches('%').parse::<f64>().unwrap(),
                    "{system} module {} {kind}",
                    words[0]
                );
            }
        }
    }
}

/// Part III's four measurements and part IV's eight, one of them printed with a comma.
#[test]
fn zero_filling() {
    let mut seen = BTreeMap::new();
    for (system, api, cells) in [
        ("zerofill-g4-1ghz", "vm_allocate", "11.2 24.0 11.5 33.6"),
        ("zerofill-cube-450", "mmap", "9.7 41.0 11.1 65.9"),
        ("zerofill-cube-450", "vm_allocate", "17.6 51.5 18.9 77,3"),
    ] {
        let columns = ["alloc 1", "touch 1", "alloc 2", "touch 2"].map(|c| {
            let (what, pages) = c.split_once(' ').unwrap();
            format!("zerofill.{what} api={api} pages={pages}")
        });
        hold(
            &columns.each_ref().map(String::as_str),
            Unit::Nanoseconds,
            1e3,
            &[line(system, cells)],
            &mut seen,
        );
    }
    assert_eq!(seen.values().sum::<usize>(), 12);
}

/// The launch times in tenths of a second, and the two header blocks of top.
#[test]
fn launches() {
    let table = [
        ("Internet Connect", "4.3 3.4 2.9 4.9 3.6 2.8"),
        ("OmniWeb", "9.8 7.2 6.1 7.8 6.6 5.8"),
        ("TextEdit Plus", "3.1 2.9 2.1 2.1 2.1 1.8"),
        ("Mail", "4.6 3.4 2.9 3.3 2.9 2.1"),
        ("iTunes", "10.4 8.7 7.2 3.8 3.1 2.4"),
        ("PhotoLine 32XL", "10.8 8.8 7.3 6.2 5.3 4.2"),
        ("System Preferences", "4.7 3.8 3.0 2.6 2.3 1.9"),
        ("Terminal", "4.4 3.6 2.9 3.3 2.9 2.5"),
        ("GraphicConverter 4.08", "5.6 4.1 2.9 2.2 1.6 1.2"),
        ("QuickTime Pro", "10.4 8.2 6.9 3.1 2.8 2.3"),
    ];
    let runs = [load("launch-10.0.4"), load("launch-10.1")];
    let mut order = Vec::new();
    for (app, text) in table {
        for (i, cell) in text.split(' ').enumerate() {
            let (run, placement) = (&runs[i / 3], ["default", "single", "dual"][i % 3]);
            let row = run
                .row(
                    "launch.time",
                    &Params::new().with("app", app).with("placement", placement),
                )
                .unwrap();
            assert!(
                (row.estimate.unwrap().value / 1e9 - cell.parse::<f64>().unwrap()).abs() < 1e-9,
                "{app} {placement}"
            );
        }
        order.push(app);
    }
    let carried: Vec<&str> = runs[0]
        .measurements
        .iter()
        .filter(|m| m.params.text("placement") == Some("default"))
        .filter_map(|m| m.params.text("app"))
        .collect();
    assert_eq!(carried, order, "in the order launched");
    blocks(&runs);
}

fn blocks(runs: &[Run; 2]) {
    let names = "processes.total processes.running processes.sleeping threads load.1min load.5min load.15min \
        cpu.user.percent \
        cpu.system.percent cpu.idle.percent sharedlibs sharedlibs.code.mib sharedlibs.data.mib sharedlibs.linkedit.mib \
        memregions \
        memregions.resident.mib memregions.private.mib memregions.shared.mib memory.wired.mib memory.active.mib \
        memory.inactive.mib \
        memory.used.mib memory.free.mib vm.mib vm.extra.mib pageins pageins.since_last pageouts pageouts.since_last";
    let printed = [
        "29 2 27 70 0.14 0.33 0.30 11.3 13.0 75.7 75 17.5 1.16 5.11 1543 29.0 4.64 32.6 45.5 35.9 95.4 126 662 781 \
         40.9 9078 0 0 0",
        "27 2 25 74 0.66 0.30 0.13 47.7 11.2 41.1 79 19.1 1.37 4.89 1321 25.7 4.33 29.9 45.1 41.9 66.3 133 635 862 \
         41.4 2304 0 0 0",
    ];
    // “05:53:45” and “17:49:55”, at the right end of the block's first line.
    let clocks = [(5 * 60 + 53) * 60 + 45, (17 * 60 + 49) * 60 + 55].map(f64::from);
    for ((run, text), clock) in runs.iter().zip(printed).zip(clocks) {
        let block = totals(run, "top");
        assert_eq!(block["clock.time_of_day.seconds"], clock);
        let pairs: Vec<(&str, &str)> = names.split_whitespace().zip(text.split(' ')).collect();
        assert_eq!((pairs.len(), block.len()), (29, 30));
        pairs.iter().for_each(|(name, cell)| {
            assert_eq!(
                block[*name],
                cell.parse::<f64>().unwrap(),
                "{} {name}",
                run.id
            )
        });
    }
    let pageins = |run: &Run, text: &str| {
        run.row("launch.pageins", &column(text).1)
            .and_then(|r| r.estimate)
            .map(|e| e.value)
    };
    let states = [
        "x state=after-boot",
        "x state=uptime days=3",
        "x state=uptime days=4",
    ];
    assert_eq!(
        states.map(|s| pageins(&runs[0], s)),
        [Some(9078.0), Some(13_000.0), None]
    );
    assert_eq!(
        states.map(|s| pageins(&runs[1], s)),
        [Some(2304.0), None, Some(4000.0)]
    );
    // “eight to ten thousand pageins during boot”, “in the low two thousand range”, “80 Meg Swap Partition”, “performed
    // twice”.
    let notes = runs.each_ref().map(|run| totals(run, "the article's text"));
    assert_eq!(
        (
            notes[0]["boot.pageins.low"],
            notes[0]["boot.pageins.high"],
            notes[1]["boot.pageins.about"]
        ),
        (8000.0, 10_000.0, 2000.0)
    );
    assert!(
        notes
            .iter()
            .all(|n| n["swap.partition.mib"] == 80.0 && n["sequences"] == 2.0)
    );
    // “30 Gig Maxtor … 7200 RPM Internal Primary Drive”, “20 Gig … 7200 RPM Internal Slave Drive”.
    assert!(notes.iter().all(|n| {
        ["drive.primary.gb", "drive.second.gb", "drives.rpm"].map(|name| n[name])
            == [30.0, 20.0, 7200.0]
    }));
}

/// “File system, Object db, fs/odb”: eleven rounds in ticks, and the ratio with as many digits as are printed.
#[test]
fn site() {
    let table = [
        (417, 220, "1.89545455"),
        (472, 144, "3.27777778"),
        (459, 103, "4.45631068"),
        (389, 75, "5.18666667"),
        (358, 68, "5.26470588"),
        (293, 69, "4.24637681"),
        (363, 66, "5.5"),
        (334, 66, "5.06060606"),
        (509, 72, "7.06944444"),
        (485, 69, "7.02898551"),
        (403, 65, "6.2"),
    ];
    let run = load("site-powermac-9500");
    let ticks = |store: &str| -> Vec<f64> {
        let row = run
            .row("site.round", &Params::new().with("store", store))
            .unwrap();
        row.process_values()
            .iter()
            .map(|ns| (ns * 60.0 / 1e9 * 1e6).round() / 1e6)
            .collect()
    };
    let (files, database) = (ticks("files"), ticks("object-database"));
    assert_eq!((files.len(), database.len()), (11, 11));
    for ((files, database), (f, o, ratio)) in files.iter().zip(&database).zip(table) {
        assert_eq!((*files, *database), (f64::from(f), f64::from(o)));
        let decimals = ratio.split_once('.').unwrap().1.len();
        assert_eq!(format!("{:.*}", decimals, files / database), ratio);
    }
}

/// No table carries a figure that is not in this file: the cells are counted.
#[test]
fn nothing_is_carried_that_was_not_printed() {
    let cells = |name: &str| {
        references::table(name)
            .unwrap()
            .runs
            .values()
            .flatten()
            .flatten()
            .count()
    };
    let counts: Vec<(&str, usize)> = references::table_names()
        .map(|name| (name, cells(name)))
        .collect();
    let expected = [
        ("lmbench-process", 12),
        ("lmbench-syscall-signal", 28),
        ("lmbench-ipc", 20),
        ("mysql-scaling", 21),
        ("mysql-query-cache", 3),
        ("apache", 6),
        ("flops", 45),
        ("zerofill-3", 4),
        ("zerofill-4", 8),
        ("launch", 60),
        ("launch-pageins", 4),
        ("site", 2),
    ];
    assert_eq!(counts, expected);
}
