//! What the articles conclude, row by row: the verdicts of the same rules that judge any run. `conclusions.rs` has
//! every conclusion in words.

use fingerpost_compare::select::{parse, part};
use fingerpost_compare::{Comparison, Options, Row, Verdict, compare, references};
use fingerpost_record::{Layer, Metric, Params, Run, Status};

fn load(text: &str) -> Run {
    let (name, wanted) = parse(text).unwrap();
    part(
        references::load(name).unwrap_or_else(|| panic!("{name}")),
        &wanted,
    )
    .unwrap()
}

fn between(base: &str, new: &str) -> Comparison {
    compare(&[load(base)], &[load(new)], &Options::default())
}

fn row<'a>(c: &'a Comparison, probe: &str) -> &'a Row {
    c.rows
        .iter()
        .find(|r| r.probe == probe)
        .unwrap_or_else(|| panic!("no row {probe}"))
}

fn ratio(c: &Comparison, probe: &str) -> f64 {
    row(c, probe).ratio.unwrap().value
}

fn at_clients(c: &Comparison, clients: i64) -> &Row {
    c.rows
        .iter()
        .find(|r| r.probe == "database.throughput" && r.params.int("clients") == Some(clients))
        .unwrap()
}

fn status(c: &Comparison, cause: &str) -> Option<Status> {
    c.causes.iter().find(|f| f.cause == cause).map(|f| f.status)
}

/// Geometric mean of the ratios of the rows of a probe.
fn mean(c: &Comparison, probe: &str) -> f64 {
    let logs: Vec<f64> = c
        .rows
        .iter()
        .filter(|r| r.probe == probe)
        .filter_map(Row::log)
        .collect();
    (logs.iter().sum::<f64>() / logs.len() as f64).exp()
}

fn g5() -> Comparison {
    between("g5-2.5-linux", "g5-2.7-darwin")
}

// No More Apple Mysteries, Part Two.

#[test]
fn the_operating_system_and_not_the_cpu() {
    for (c, slower) in [
        (g5(), "g5-2.7-darwin"),
        (between("g5-2.7-darwin", "g5-2.5-linux"), "g5-2.7-darwin"),
    ] {
        assert!(
            c.headline.contains("the operating system, not the CPU"),
            "{}",
            c.headline
        );
        assert!(c.headline.contains(slower), "{}", c.headline);
        assert_eq!(status(&c, "cpu.speed"), Some(Status::RuledOut));
        assert_eq!(c.hosts[0].what, "kernel");
        let first = &c.causes[0];
        assert_eq!(
            (first.cause.as_str(), first.layer, first.status),
            ("syscall.entry", Layer::Kernel, Status::Confirmed)
        );
        assert!(c.unexplained < 0.25, "{}", c.unexplained);
        let below_the_program = [Layer::Kernel, Layer::Network, Layer::Scheduler];
        assert!(
            c.causes
                .iter()
                .filter(|f| f.status != Status::RuledOut)
                .all(|f| below_the_program.contains(&f.layer))
        );
    }
}

#[test]
fn the_clock_is_eight_percent_faster_on_the_slower_side() {
    let c = g5();
    let evidence = &c
        .causes
        .iter()
        .find(|f| f.cause == "cpu.speed")
        .unwrap()
        .evidence[0];
    assert_eq!(evidence.metric, Metric::ClockRate);
    let [linux, mac] = [evidence.base, evidence.value].map(Option::unwrap);
    assert!((mac / linux - 1.08).abs() < 0.005, "{evidence:?}");
}

#[test]
fn process_creation_is_much_slower_under_mac_os_x() {
    let c = g5();
    for probe in ["process.fork", "process.exec_dynamic", "process.shell"] {
        assert_eq!(row(&c, probe).verdict, Verdict::Slower);
        assert!(ratio(&c, probe) > 2.0);
    }
    assert_eq!(status(&c, "kernel.process"), Some(Status::Confirmed));
}

#[test]
fn under_linux_the_g5_creates_processes_like_the_others() {
    let xeon = between("xeon-3.6-linux", "g5-2.5-linux");
    assert!(
        row(&xeon, "process.fork").verdict == Verdict::Slower && ratio(&xeon, "process.fork") < 1.2
    );
    assert_eq!(row(&xeon, "process.shell").verdict, Verdict::Faster);
    assert!(
        ratio(
            &between("opteron-850-linux", "g5-2.5-linux"),
            "process.shell"
        ) < 1.0
    );
}

#[test]
fn process_creation_takes_up_to_five_times_longer() {
    let c = between("opteron-850-linux", "g5-2.7-darwin");
    let most = c
        .rows
        .iter()
        .filter(|r| r.probe.starts_with("process."))
        .filter_map(|r| r.ratio)
        .map(|r| r.value)
        .fold(0.0, f64::max);
    assert!((most - 5.27).abs() < 0.01, "{most}");
}

#[test]
fn signals_and_system_calls_are_far_slower_under_mac_os_x() {
    let c = g5();
    for (probe, at_least) in [
        ("signal.install", 4.0),
        ("signal.handle", 3.0),
        ("syscall.null", 8.0),
        ("lmbench.null_io", 7.0),
    ] {
        let r = row(&c, probe);
        assert!(
            r.verdict == Verdict::Slower && r.ratio.unwrap().value > at_least,
            "{probe}"
        );
    }
    for probe in ["syscall.stat", "syscall.open_close", "syscall.select"] {
        assert_eq!(row(&c, probe).verdict, Verdict::Slower, "{probe}");
    }
}

#[test]
fn the_opteron_signals_faster_than_the_xeon() {
    let c = between("xeon-3.6-linux", "opteron-850-linux");
    assert_eq!(
        (
            row(&c, "signal.install").verdict,
            row(&c, "signal.handle").verdict
        ),
        (Verdict::Faster, Verdict::Faster)
    );
}

#[test]
fn tcp_is_more_than_twice_as_slow_under_mac_os_x_as_on_any_linux() {
    for linux in ["g5-2.5-linux", "xeon-3.6-linux", "opteron-850-linux"] {
        let c = between(linux, "g5-2.7-darwin");
        assert!(
            row(&c, "ipc.tcp").verdict == Verdict::Slower && ratio(&c, "ipc.tcp") > 2.0,
            "{linux}"
        );
        assert_eq!(row(&c, "ipc.tcp_connect").verdict, Verdict::Slower);
    }
    assert_eq!(status(&g5(), "network.stack"), Some(Status::Confirmed));
    // What the table shows and the text passes over: pipes and local sockets are not slower.
    assert_eq!(status(&g5(), "kernel.ipc"), Some(Status::RuledOut));
}

#[test]
fn mysql_collapses_under_mac_os_x_from_five_clients_on() {
    let c = g5();
    let curve = &c.curves[0];
    assert_eq!(
        (curve.base_collapses_from, curve.new_collapses_from),
        (None, Some(5))
    );
    assert!(
        c.headline
            .contains("database.throughput collapses on g5-2.7-darwin from 5 clients on"),
        "{}",
        c.headline
    );
    assert!(
        [5, 10, 20, 35, 50]
            .iter()
            .all(|n| at_clients(&c, *n).verdict == Verdict::Slower)
    );
    let worst = at_clients(&c, 20).ratio.unwrap().value;
    assert!((8.0..9.0).contains(&worst));
    let finding = c
        .causes
        .iter()
        .find(|f| f.cause == "kernel.scaling")
        .unwrap();
    assert_eq!(
        finding.status,
        Status::Likely,
        "the authors could not prove it either"
    );
    // 1/192 - 1/228 s are 0.822 ms; 1/47 - 1/414 s are 18.861 ms; a null call is 1.13 - 0.14 µs slower.
    let told = |metric: Metric| {
        let of = |fact: &&fingerpost_record::Evidence| fact.metric == metric;
        let fact = finding.evidence.iter().find(of).unwrap();
        (fact.base, fact.value.unwrap())
    };
    let about = |found: f64, figure: f64| (found / figure - 1.0).abs() < 0.01;
    let (one, many) = told(Metric::LongerByClients);
    assert!(about(one.unwrap(), 0.822e-3) && about(many, 18.861e-3));
    let (one, many) = told(Metric::EntriesNeeded);
    assert!(about(one.unwrap(), 831.0) && about(many, 19_052.0));
    assert!(about(told(Metric::NullCallCost).1, 990.0));
    assert!(about(told(Metric::ExplainedByEntries).1, 0.822 / 18.861));
}

#[test]
fn with_one_and_two_clients_mac_os_x_is_mediocre_but_not_bad() {
    let c = g5();
    for clients in [1, 2] {
        let r = at_clients(&c, clients);
        assert!(r.verdict == Verdict::Slower && r.ratio.unwrap().value < 1.3);
    }
}

#[test]
fn linux_keeps_its_throughput_and_mac_os_x_a_quarter() {
    let c = g5();
    let (one, last) = (c.curves[0].points[0], c.curves[0].points[6]);
    assert!(last.1 / one.1 > 1.8);
    assert!((last.2 / one.2 - 0.25).abs() < 0.01);
    assert_eq!(
        between("opteron-850-linux", "g5-2.5-linux").curves[0].base_collapses_from,
        None
    );
}

#[test]
fn apache_two_helps_linux_threefold_and_mac_os_x_hardly() {
    let versions = |host: &str| {
        between(
            &format!("{host}[server=apache-1.3]"),
            &format!("{host}[server=apache-2.0]"),
        )
    };
    let darwin = versions("g5-2.7-darwin");
    assert!((0.9..1.0).contains(&ratio(&darwin, "web.throughput")));
    for host in ["g5-2.5-linux", "xeon-3.6-linux"] {
        let c = versions(host);
        assert_eq!(row(&c, "web.throughput").verdict, Verdict::Faster);
        assert!(
            (2.5..3.2).contains(&(1.0 / ratio(&c, "web.throughput"))),
            "{host}"
        );
    }
    assert!(
        g5().rows
            .iter()
            .filter(|r| r.probe == "web.throughput")
            .all(|r| r.verdict == Verdict::Slower)
    );
}

#[test]
fn the_network_and_the_disk_are_ruled_out() {
    let c = g5();
    let evidence = |cause: &str| {
        &c.causes
            .iter()
            .find(|f| f.cause == cause && f.status == Status::RuledOut)
            .unwrap()
            .evidence[0]
    };
    let link = evidence("network.shaping");
    assert_eq!(
        (link.metric, link.value, link.of),
        (Metric::LinkPeak, Some(140.0), Some(1000.0))
    );
    let written = evidence("storage.durability");
    assert_eq!(written.metric, Metric::WrittenAtMost);
    assert!((written.value.unwrap() / 1e3 - 23.0).abs() < 0.5);
}

#[test]
fn the_g5_computes_as_well_as_the_opteron() {
    let c = between("flops-opteron-2.4-gcc-3.3.3", "flops-g5-2.7-gcc-4.0");
    let average = c
        .rows
        .iter()
        .find(|r| r.params.text("module") == Some("average"))
        .unwrap();
    assert!(
        average.verdict != Verdict::Slower && (average.ratio.unwrap().value - 1.0).abs() < 0.03
    );
}

#[test]
fn gcc_4_helps_the_g5_and_hurts_the_opteron() {
    let average = |c: &Comparison| {
        c.rows
            .iter()
            .find(|r| r.params.text("module") == Some("average"))
            .unwrap()
            .clone()
    };
    let g5 = average(&between("flops-g5-2.7-gcc-3.3", "flops-g5-2.7-gcc-4.0"));
    assert_eq!(g5.verdict, Verdict::Faster);
    // At the same clock the table gives 57 %; the article's “almost 70 %” is against the machine with the slower clock.
    assert!((1.0 / g5.ratio.unwrap().value - 1.57).abs() < 0.01);
    let slow_clock = average(&between("flops-g5-2.5-gcc-3.3", "flops-g5-2.7-gcc-4.0"));
    assert!((1.0 / slow_clock.ratio.unwrap().value - 1.69).abs() < 0.01);
    assert_eq!(
        average(&between(
            "flops-opteron-2.4-gcc-3.3.3",
            "flops-opteron-2.4-gcc-4.0"
        ))
        .verdict,
        Verdict::Slower
    );
}

/// The same compiler on both clocks: here the CPU's clock is the whole difference, and the same rules say so.
#[test]
fn where_the_clock_is_the_difference_the_clock_is_named() {
    // 8 % on single published figures is resolved only against a finer threshold than the default 3 %.
    let (base, new) = (load("flops-g5-2.7-gcc-3.3"), load("flops-g5-2.5-gcc-3.3"));
    let c = compare(
        &[base],
        &[new],
        &Options {
            threshold: 0.01,
            ..Options::default()
        },
    );
    assert_eq!(c.causes[0].cause, "cpu.speed");
    assert!(!c.headline.contains("operating system"), "{}", c.headline);
}

/// Eight modules and their average, each some 1.075 times slower and none beyond the default threshold of 3 % by
/// itself: “no difference found” it was, of a clock that is 8 % slower.
#[test]
fn rows_that_move_together_are_told_together() {
    for (base, new, word) in [
        ("flops-g5-2.7-gcc-3.3", "flops-g5-2.5-gcc-3.3", "slower"),
        ("flops-g5-2.5-gcc-3.3", "flops-g5-2.7-gcc-3.3", "faster"),
    ] {
        let c = between(base, new);
        assert!(c.rows.iter().all(|r| r.verdict == Verdict::Unresolved));
        let [together] = c.pooled.as_slice() else {
            panic!("{:?}", c.pooled)
        };
        assert_eq!(
            (together.rows, together.verdict.to_string().as_str()),
            (8, word),
            "the average is made of the eight"
        );
        let times = if word == "slower" {
            together.ratio.value
        } else {
            1.0 / together.ratio.value
        };
        assert!((times - 1.076).abs() < 0.003, "{:?}", together.ratio);
        assert!(
            c.headline.contains(&format!("is {word} than"))
                && c.headline.contains("8 rows taken together"),
            "{}",
            c.headline
        );
        assert_eq!(
            (c.causes[0].cause.as_str(), c.causes[0].layer),
            ("cpu.speed", Layer::Cpu),
            "{:#?}",
            c.causes
        );
        assert!(
            c.headline.contains("a slower CPU")
                && (word == "slower" || c.headline.contains(&format!("a slower CPU on {base}"))),
            "{}",
            c.headline
        );
    }
}

// OSX Version 10.1 Swapfile Benchmarks.

fn placements(system: &str, placement: &str) -> Comparison {
    between(
        &format!("launch-{system}[placement=default]"),
        &format!("launch-{system}[placement={placement}]"),
    )
}

fn verdicts(c: &Comparison, verdict: Verdict) -> usize {
    c.rows
        .iter()
        .filter(|r| r.probe == "launch.time" && r.verdict == verdict)
        .count()
}

#[test]
fn a_swap_partition_makes_a_large_difference_under_10_0_4() {
    assert!(verdicts(&placements("10.0.4", "single"), Verdict::Faster) >= 9);
    let dual = placements("10.0.4", "dual");
    assert_eq!(verdicts(&dual, Verdict::Faster), 10);
    assert!(mean(&dual, "launch.time") < 0.7);
}

#[test]
fn under_10_1_it_still_helps_and_helps_less() {
    for placement in ["single", "dual"] {
        let (old, new) = (
            placements("10.0.4", placement),
            placements("10.1", placement),
        );
        assert!(verdicts(&new, Verdict::Faster) > verdicts(&new, Verdict::Slower));
        assert!(
            mean(&new, "launch.time") > mean(&old, "launch.time"),
            "{placement}"
        );
    }
}

#[test]
fn version_10_1_launches_faster_and_pages_in_far_less() {
    let c = between("launch-10.0.4", "launch-10.1");
    assert!(verdicts(&c, Verdict::Faster) > 20 && verdicts(&c, Verdict::Slower) <= 1);
    let pageins = row(&c, "launch.pageins");
    assert!(pageins.verdict == Verdict::Faster && pageins.ratio.unwrap().value < 0.26);
    assert_eq!(
        status(&c, "memory.paging"),
        Some(Status::Likely),
        "{:?}",
        c.causes
    );
}

/// The author says that paging less “alone accounts for some” of it, under another version of the system on one
/// machine: a part, of a size that nobody knows. It is not told as a cause that explains nothing of the difference.
#[test]
fn what_paging_makes_of_the_gain_is_told_as_not_known() {
    let c = between("launch-10.0.4", "launch-10.1");
    assert!(
        c.headline.contains(", launch.time)"),
        "the largest gain is of a time, not of a count: {}",
        c.headline
    );
    let told = ", with another operating system (Mac OS X 10.0.4 → Mac OS X 10.1 (5G64)): probably paging on \
        launch-10.0.4; how much of the \
                difference that makes is not known.";
    assert!(c.headline.ends_with(told), "{}", c.headline);
    let back = between("launch-10.1", "launch-10.0.4");
    assert!(
        back.headline
            .contains("probably paging; how much of the difference that makes is not known"),
        "{}",
        back.headline
    );
}

#[test]
fn many_apple_applications_beat_the_old_dual_drive_by_default() {
    let c = between(
        "launch-10.0.4[placement=dual]",
        "launch-10.1[placement=default]",
    );
    let app = |name: &str| {
        c.rows
            .iter()
            .find(|r| r.params.text("app") == Some(name))
            .unwrap()
            .verdict
    };
    assert_eq!(
        [
            app("iTunes"),
            app("System Preferences"),
            app("QuickTime Pro")
        ],
        [Verdict::Faster; 3]
    );
    // The table does not bear out Mail: 2.9 s before, 3.3 s after.
    assert_eq!(app("Mail"), Verdict::Slower);
}

// Zerofilling, Part IV.

#[test]
fn mmap_is_almost_twice_as_fast_and_faulting_is_unaffected() {
    let c = between(
        "zerofill-cube-450[api=vm_allocate]",
        "zerofill-cube-450[api=mmap]",
    );
    for r in c.rows.iter().filter(|r| r.probe == "zerofill.alloc") {
        assert!(
            r.verdict == Verdict::Faster && (1.6..2.0).contains(&(1.0 / r.ratio.unwrap().value))
        );
    }
    for pages in [1, 2] {
        let of = |probe: &str| {
            c.rows
                .iter()
                .find(|r| r.probe == probe && r.params == Params::new().with("pages", pages))
                .unwrap()
        };
        let (touch, alloc) = (of("zerofill.touch"), of("zerofill.alloc"));
        let (with, without) = (
            touch.new.value - alloc.new.value,
            touch.base.value - alloc.base.value,
        );
        assert!((with / without - 1.0).abs() < 0.1, "{with} and {without}");
    }
}

#[test]
fn touching_a_page_costs_more_than_allocating_and_freeing_it() {
    let run = load("zerofill-g4-1ghz");
    let of = |probe: &str, pages: i64| {
        run.row(
            probe,
            &Params::new()
                .with("api", "vm_allocate")
                .with("pages", pages),
        )
        .unwrap()
        .estimate
        .unwrap()
        .value
    };
    for pages in [1, 2] {
        assert!(
            of("zerofill.touch", pages) - of("zerofill.alloc", pages) > of("zerofill.alloc", pages)
        );
    }
}

// The file system against the object database.

#[test]
fn the_object_database_is_up_to_seven_times_faster() {
    let c = between(
        "site-powermac-9500[store=files]",
        "site-powermac-9500[store=object-database]",
    );
    let r = row(&c, "site.round");
    assert_eq!(r.verdict, Verdict::Faster);
    assert!(
        (4.0..7.1).contains(&(1.0 / r.ratio.unwrap().value)),
        "{:?}",
        r.ratio
    );
    let run = load("site-powermac-9500");
    let rounds = |store: &str| {
        run.row("site.round", &Params::new().with("store", store))
            .unwrap()
            .process_values()
    };
    let ratios: Vec<f64> = rounds("files")
        .iter()
        .zip(rounds("object-database"))
        .map(|(f, o)| f / o)
        .collect();
    assert_eq!(ratios.len(), 11);
    assert!(
        (ratios[0] - 1.89545455).abs() < 1e-6
            && (ratios[8] - 7.06944444).abs() < 1e-6
            && (ratios[10] - 6.2).abs() < 1e-9
    );
    assert!(ratios.iter().copied().fold(0.0, f64::max) < 7.1);
    let half = |r: &[f64]| r.iter().sum::<f64>() / r.len() as f64;
    assert!(half(&ratios[6..]) > half(&ratios[..5]));
}

/// No reference system differs from itself.
#[test]
fn a_reference_is_like_itself() {
    for name in references::names() {
        let c = between(&name, &name);
        assert!(
            c.rows
                .iter()
                .all(|r| !matches!(r.verdict, Verdict::Slower | Verdict::Faster)),
            "{name}"
        );
        assert!(
            c.causes.is_empty() && c.hosts.is_empty() && c.not_compared.is_empty(),
            "{name}"
        );
    }
}
