use std::collections::BTreeSet;

use fingerpost_record::Params;

use super::*;

fn lab(name: &str) -> &'static Lab {
    crate::REGISTRY
        .iter()
        .copied()
        .find(|lab| lab.name == name)
        .unwrap()
}

fn probe(name: &str) -> &'static Probe {
    fingerpost_probes::all().find(|p| p.name == name).unwrap()
}

/// What the records set, and variations of it.
const ATTACKS: [(&str, &str, &str); 38] = [
    ("database", "server.ARCHIVE_COMMAND", "touch x"),
    ("database", "server.Archive_Command", "x"),
    ("database", "server.archive-command", "x"),
    ("database", "server.archive_command", "x"),
    ("database", "server.loose_skip_networking", "0"),
    ("database", "server.loose-skip-networking", "0"),
    ("database", "server.loose_port", "3306"),
    ("database", "server.loose_bind_address", "0.0.0.0"),
    ("database", "server.skip_networking", "0"),
    ("database", "server.bind_address", "0.0.0.0"),
    ("database", "server.innodb_buffer_pool_siz", "1M"),
    ("database", "server.loose_sync_binlog", "1"),
    ("database", "server.SYNC_BINLOG", "1"),
    ("database", "server.sync-binlog", "1"),
    ("database", "server.sync_binlog", "1 --load=x"),
    ("database", "server.log_bin", "name"),
    ("database", "server.log_bin", "../../x"),
    ("database", "server.ssl_passphrase_command", "x"),
    ("database", "server.shared_preload_libraries", "x"),
    ("database", "server.work_mem", "1GB\nx=y"),
    ("database", "server.", "1"),
    ("database", "server-prefix", "sh"),
    ("database", "dir", "x"),
    ("database", "url", "mysql://h"),
    ("database", "password_file", "x"),
    ("database", "env.LD_PRELOAD", "x.so"),
    ("database", "preload", "x.so"),
    ("database", "Engine", "sqlite"),
    ("database", "engine", "SQLite"),
    ("web", "server.work_mem", "1MB"),
    ("web", "server", "127.0.0.1"),
    ("launch", "manifest", "apps.toml"),
    ("launch", "placements", "single:/dev/sda1"),
    ("launch", "placements", "file:x"),
    ("launch", "existing_swap", "off"),
    ("site", "dirs", "x"),
    ("site", "site", "x"),
    ("flops", "cflags", "-ftime-trace=FILE"),
];

#[test]
fn what_the_user_alone_may_choose_is_taken_of_no_lab() {
    for (name, key, value) in ATTACKS {
        assert!(
            of_lab(lab(name), key, value).is_err(),
            "{name} {key}={value}"
        );
        let of_web = ("web", "server.work_mem") == (name, key);
        assert!(of_web || of_any(key, value).is_err(), "{key}={value}");
    }
}

#[test]
fn flags_that_name_files_or_load_code_are_not_taken() {
    for flags in [
        "-ftime-trace=x",
        "-fplugin=x",
        "-fplugin=/tmp/x.so",
        "-O2 -wrapper sh",
        "-O2 -B/tmp",
        "-Btmp",
        "-Xclang -load",
        "-O2 @more",
        "-fpass-plugin=x.so",
        "-fdump-tree-all=x",
        "-fprofile-use=x",
        "-fprofile-generate",
        "-foptimization-record-file=x",
        "-fmodules-cache-path=x",
        "-fcallgraph-info",
        "-fstack-usage",
        "-gsplit-dwarf",
        "-fuse-ld=x",
        "-save-temps",
        "-o x",
        "-include x",
        "-I.",
        "-specs=x",
        "-march=native,x",
        "-march=/tmp/x",
        "-march=",
        "-std=@x",
        "-O2  -g",
        "-O2\t-g",
        "-O2\n-B.",
        "-mllvm",
        "-mrelax-cmdline-file=x",
        "-flto",
        "-o2",
        "-O4",
        "-FAST",
        "",
        " ",
    ] {
        assert!(
            of_probe(probe("cpu.flops"), "cflags", flags).is_err(),
            "{flags}"
        );
    }
    for title in [
        "/tmp/compiler",
        "reboot",
        "sh -c",
        "gcc",
        "gcc ",
        "gcc x",
        "gcc 12.",
        "./gcc 12",
        "gcc 12.2,sh 1",
        "GCC 12",
    ] {
        assert!(
            of_probe(probe("cpu.flops"), "cc", title).is_err(),
            "{title}"
        );
    }
}

#[test]
fn what_records_of_measurements_state_is_taken() {
    for (name, key, value) in [
        ("database", "engine", "mariadb"),
        ("database", "clients", "8"),
        ("database", "clients", "1,2,5"),
        ("database", "query_cache", "off"),
        ("database", "scale", "2"),
        ("database", "server.log_bin", "1"),
        ("database", "server.log_bin", "OFF"),
        ("database", "server.innodb_flush_log_at_trx_commit", "2"),
        ("database", "server.innodb_flush_method", "O_DIRECT"),
        ("database", "server.shared_buffers", "128MB"),
        ("database", "server.checkpoint_completion_target", "0.9"),
        ("database", "server.checkpoint_timeout", "5min"),
        ("web", "connections", "100"),
        ("web", "size", "64K"),
        ("web", "size", "1024"),
        ("web", "rate", "1000.5"),
        ("launch", "pressure", "0.6"),
        ("launch", "pressure", "none"),
        ("launch", "placements", "file,zram"),
        ("launch", "swap_size", "67108864"),
        ("launch", "swap_size", "64M"),
        ("launch", "manifest", "published"),
        ("site", "memory", "none,8M"),
        ("site", "store", "lmdb,sqlite"),
        ("flops", "cc", "gcc 12.2.0"),
        ("flops", "cflags", "-O2 -march=native -ffast-math"),
        ("flops", "cflags", "-O3 -mcpu=neoverse-n1 -mno-avx512f"),
    ] {
        assert_eq!(
            of_lab(lab(name), key, value),
            Ok(()),
            "{name} {key}={value}"
        );
    }
    assert_eq!(of_probe(probe("syscall.poll"), "fds", "100"), Ok(()));
    assert_eq!(of_probe(probe("ipc.pipe"), "placement", "cross"), Ok(()));
    assert!(of_probe(probe("ipc.pipe"), "placement", "Cross").is_err());
    assert!(of_probe(probe("syscall.poll"), "fds", "-1").is_err());
    assert!(of_probe(probe("syscall.poll"), "env.LD_PRELOAD", "x").is_err());
    // Each probe's own rows.
    for probe in fingerpost_probes::all().chain(fingerpost_probes::lab_rows()) {
        for (key, value) in (probe.variants)().iter().flat_map(Params::iter) {
            assert_eq!(
                of_probe(probe, key, &value.to_string()),
                Ok(()),
                "{} {key}={value}",
                probe.name
            );
        }
    }
}

/// Names and values near to those that are known, and far from them: whatever is taken is exactly a known name with a
/// value that holds nothing but signs of words and numbers.
#[test]
fn nothing_passes_that_is_not_on_the_list() {
    let labs: Vec<&Lab> = crate::REGISTRY.to_vec();
    let mut known: BTreeSet<String> = variables::VARIABLES
        .iter()
        .map(|(name, _)| format!("server.{name}"))
        .collect();
    for lab in &labs {
        known.extend(lab.all_settings().map(|s| s.key.to_owned()));
        for probe in lab.probes() {
            for params in (probe.variants)() {
                known.extend(params.iter().map(|(key, _)| key.to_owned()));
            }
        }
    }
    let known: Vec<String> = known.into_iter().filter(|key| key != "server.").collect();
    let mut random = fastrand::Rng::with_seed(53);
    let pieces = [
        "loose_",
        "skip-",
        "enable_",
        "env.",
        "server.",
        "archive_command",
        "=",
        "/",
        "..",
        "\n",
        " ",
        "-",
        "_",
        ".so",
        "x",
        "0",
    ];
    let values = [
        "1",
        "on",
        "OFF",
        "8M",
        "sqlite",
        "/etc/passwd",
        "x.so",
        "$(id)",
        "1;id",
        "-O2",
        "gcc 12.2.0",
        "none",
        "file",
    ];
    let (mut taken, mut refused) = (0, 0);
    for _ in 0..3_000 {
        let mut key = known[random.usize(..known.len())].clone();
        let honest = random.u8(..4) == 0;
        if !honest {
            for _ in 0..random.usize(1..3) {
                match random.u8(..6) {
                    0 => key = key.to_uppercase(),
                    1 => key = key.replace('_', "-"),
                    2 => {
                        let at = random.usize(..=key.len());
                        key.insert_str(at, pieces[random.usize(..pieces.len())]);
                    }
                    3 => _ = key.pop(),
                    4 => key = key.strip_prefix("server.").unwrap_or(&key).to_owned(),
                    _ => {
                        key = key
                            .chars()
                            .map(|c| {
                                if random.bool() {
                                    c.to_ascii_uppercase()
                                } else {
                                    c
                                }
                            })
                            .collect()
                    }
                }
            }
        }
        let mut value = values[random.usize(..values.len())].to_owned();
        if random.u8(..3) == 0 {
            let at = random.usize(..=value.len());
            value.insert_str(at, pieces[random.usize(..pieces.len())]);
        }
        for lab in &labs {
            if of_lab(lab, &key, &value).is_ok() {
                taken += 1;
                assert!(known.contains(&key), "{} {key}={value}", lab.name);
                let plain = |c: char| c.is_ascii_alphanumeric() || "_.,-= ".contains(c);
                assert!(
                    value.chars().all(plain) && !value.contains(".so") && !value.contains(".."),
                    "{key}={value}"
                );
            } else {
                refused += 1;
            }
        }
    }
    assert!(taken > 20 && refused > 5_000, "{taken} {refused}");
}
