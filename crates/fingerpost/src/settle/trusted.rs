//! Which values of a record may be set here. A record may come from anywhere: it must not choose a program that is run,
//! a file that is read, or code that a compiler or a server loads. Whoever wants such a setting names it on the command
//! line.

/// The longest value that is taken.
const MOST: usize = 200;
/// How words begin that only say how code is made.
const FLAGS: [&str; 6] = ["-O", "-m", "-f", "-g", "-std=", "-pipe"];
/// Parts of such words that load code or read or write files.
const NOT_PLAIN: [&str; 15] = [
    "/", "plugin", "@", ",", "pass", "dump", "file", "record", "save", "cache", "info", "usage",
    "dir", "split", "use-ld",
];
/// Parts of a server's settings that name files or code.
const FILES: [&str; 9] = [
    "file",
    "dir",
    "plugin",
    "init",
    "exec",
    "command",
    "library",
    "libraries",
    "path",
];

/// Whether this value of a record may be set, else why not. `key` is the setting's.
pub fn taken(key: &str, value: &str) -> Result<(), String> {
    let harmless = value.chars().count() <= MOST && !value.contains(char::is_control);
    let allowed = harmless
        && match key {
            // Places of swap are checked by the laboratory, and need leave to change the system.
            "placements" => true,
            // The title of a compiler that is found here, never a program's name.
            "cc" => value.contains(' ') && !value.contains('/'),
            "cflags" => value.split_whitespace().all(is_plain_flag),
            "manifest" | "url" | "password_file" => false,
            _ if key.starts_with("server.") => {
                is_plain(value) && !FILES.iter().any(|part| key.contains(part))
            }
            _ => !value.contains('/'),
        };
    let refused = || {
        format!(
            "a record may not choose a program or a file that is used here; if you trust it, add --set '{key}=…' \
             yourself"
        )
    };
    allowed.then_some(()).ok_or_else(refused)
}

fn is_plain_flag(word: &str) -> bool {
    FLAGS.iter().any(|start| word.starts_with(start))
        && !NOT_PLAIN.iter().any(|part| word.contains(part))
}

fn is_plain(value: &str) -> bool {
    value
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || "_.+-%,".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_says_how_code_is_made_or_how_a_server_works_is_taken() {
        for (key, value) in [
            ("cc", "gcc 12.2.0"),
            ("cflags", "-O2 -march=native -ffast-math"),
            ("query_cache", "off"),
            ("server.log_bin", "1"),
            ("server.innodb_flush_log_at_trx_commit", "2"),
            ("placements", "dual:/mnt"),
            ("clients", "8"),
        ] {
            assert_eq!(taken(key, value), Ok(()), "{key}={value}");
        }
    }

    #[test]
    fn what_names_a_program_a_file_or_code_is_not() {
        let long = "1".repeat(MOST + 1);
        for (key, value) in [
            ("cc", "/tmp/compiler"),
            ("cc", "reboot"),
            ("cflags", "-fplugin=/tmp/x.so"),
            ("cflags", "-fplugin=x"),
            ("cflags", "-O2 -wrapper sh"),
            ("cflags", "-O2 -B/tmp"),
            ("cflags", "-Xclang -load"),
            ("cflags", "-O2 @/tmp/more"),
            ("cflags", "-fpass-plugin=x.so"),
            ("manifest", "apps.toml"),
            ("cflags", "-fdump-tree-all=x"),
            ("cflags", "-fprofile-use=x"),
            ("cflags", "-foptimization-record-file=x"),
            ("cflags", "-fmodules-cache-path=x"),
            ("cflags", "-fcallgraph-info"),
            ("cflags", "-fstack-usage"),
            ("cflags", "-gsplit-dwarf"),
            ("cflags", "-fuse-ld=x"),
            ("url", "x:1"),
            ("dir", "/etc"),
            ("server.init_file", "x"),
            ("server.plugin_load", "x"),
            ("server.shared_preload_libraries", "x"),
            ("server.general_log", "1\nload=x"),
            ("clients", long.as_str()),
        ] {
            assert!(
                taken(key, value).is_err_and(|why| why.contains(&format!("--set '{key}="))),
                "{key}={value}"
            );
        }
    }
}
