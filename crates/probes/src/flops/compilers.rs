//! The C compilers that the flops lab compares: finds them, builds the kernels with each, and tells their rows.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use fingerpost_record::descriptor::FLOPS;
use fingerpost_record::{Measurement, Outcome, Param, Params, text};
use fingerpost_sys::procfs::Paths;
use fingerpost_sys::{child, compilers};

use super::SOURCE;
use crate::probe::Probe;

/// The article's flags, and its tuning for the machine at hand. (-march=native is x86's word for what others call
/// -mcpu=native.)
const CFLAGS: &str = if cfg!(target_arch = "x86_64") {
    "-O2 -march=native"
} else {
    "-O2 -mcpu=native"
};

/// The settings with their defaults and a line of help.
pub(super) const SETTINGS: [[&str; 3]; 2] = [
    [
        "cc",
        "every C compiler found",
        "compilers to build the kernels with, such as gcc,clang",
    ],
    ["cflags", CFLAGS, "flags to build them with"],
];

/// How long a compiler may take.
const DEADLINE: Duration = Duration::from_secs(60);

/// What is to be built.
pub struct Compile {
    /// Compilers by name or path; nothing for every one found.
    pub cc: Option<Vec<String>>,
    /// The flags.
    pub cflags: String,
    /// The modules to measure.
    modules: Vec<Param>,
    probe: &'static Probe,
}

/// A row that a program measures which was built here. It is a probe process like this program's own.
pub struct Program {
    /// The row's probe.
    pub probe: &'static Probe,
    /// The row's parameters.
    pub params: Params,
    /// The program.
    pub file: PathBuf,
}

/// What was built.
#[derive(Default)]
pub struct Built {
    /// A row per compiler and module.
    pub rows: Vec<Program>,
    /// A row per compiler that failed.
    pub failed: Vec<Measurement>,
    /// A sentence for the person who waits.
    pub note: Option<String>,
}

/// A compiler with the name of its rows.
struct Compiler {
    file: PathBuf,
    title: String,
}

/// What must be built for these rows with these settings: something where the built-in kernels are to be measured.
pub fn wanted<'a>(
    rows: impl Iterator<Item = (&'static Probe, &'a Params)>,
    settings: &BTreeMap<String, Vec<Param>>,
) -> Option<Compile> {
    let ours: Vec<_> = rows.filter(|(probe, _)| probe.name == FLOPS).collect();
    let (probe, _) = *ours.first()?;
    let mut modules: Vec<Param> = ours
        .iter()
        .filter_map(|(_, params)| params.get("module").cloned())
        .collect();
    modules.dedup();
    let words = |key: &str| {
        Some(
            settings
                .get(key)?
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>(),
        )
    };
    // Flags hold commas of their own (`-Wl,-O1`).
    let cflags = words("cflags").map_or(CFLAGS.to_owned(), |flags| flags.join(","));
    Some(Compile {
        cc: words("cc"),
        cflags,
        modules,
        probe,
    })
}

/// Builds the kernels with every compiler, into `dir`.
///
/// # Errors
/// When the source cannot be written there. A compiler that fails is a row, not an error.
pub fn build(compile: &Compile, dir: &Path) -> io::Result<Built> {
    let source = dir.join("flops.c");
    fs::write(&source, SOURCE)
        .map_err(|e| io::Error::new(e.kind(), format!("cannot write {}: {e}", source.display())))?;
    let compilers = match &compile.cc {
        Some(names) => named(names),
        None => found(),
    };
    let mut built = Built::default();
    if compilers.is_empty() {
        built.note = Some(
            "no C compiler was found, so only the built-in kernels are measured; name one with --set cc=PATH"
                .to_owned(),
        );
    }
    for (i, compiler) in compilers.iter().enumerate() {
        let program = dir.join(format!("flops-{i}"));
        let params = Params::new()
            .with("compiler", compiler.title.as_str())
            .with("cflags", compile.cflags.as_str());
        match run_compiler(compiler, &compile.cflags, &source, &program) {
            Ok(()) => built
                .rows
                .extend(compile.modules.iter().map(|module| Program {
                    probe: compile.probe,
                    params: params.clone().with("module", module.clone()),
                    file: program.clone(),
                })),
            Err(reason) => built.failed.push(compile.probe.without_figure(
                params,
                Outcome::Failed,
                reason,
            )),
        }
    }
    Ok(built)
}

/// Every compiler found, one per title: two copies of one version would give the same rows.
fn found() -> Vec<Compiler> {
    let mut titles = BTreeSet::new();
    let all = compilers::find(&Paths::system())
        .into_keys()
        .map(|file| Compiler {
            title: title(&file),
            file,
        });
    all.filter(|compiler| titles.insert(compiler.title.clone()))
        .collect()
}

/// The compilers that the user named, each once; the same version at two places is told apart by name.
fn named(names: &[String]) -> Vec<Compiler> {
    let mut compilers: Vec<Compiler> = Vec::new();
    for name in names {
        let file = file_of(name);
        let known = title(&file);
        let taken = compilers.iter().any(|c| c.title == known);
        let title = if taken {
            format!("{known} ({name})")
        } else {
            known
        };
        if !compilers.iter().any(|c| c.file == file) {
            compilers.push(Compiler { file, title });
        }
    }
    compilers
}

/// The compiler's file: a name or a path as the user gives it, or the title that rows have.
fn file_of(name: &str) -> PathBuf {
    let titled = || {
        found()
            .into_iter()
            .find(|c| c.title == name)
            .map(|c| c.file)
    };
    let looks_like_a_title = name.contains(' ') && !name.contains('/');
    looks_like_a_title
        .then(titled)
        .flatten()
        .unwrap_or_else(|| PathBuf::from(name))
}

/// `gcc 12.2.0`, `clang 14.0.6`; the file's name where the compiler says nothing of itself.
fn title(file: &Path) -> String {
    let name = file.file_name().map_or_else(
        || file.display().to_string(),
        |name| name.to_string_lossy().into_owned(),
    );
    compilers::version(file)
        .and_then(|line| parse_title(&line))
        .unwrap_or(name)
}

/// The kind and the version in the first line of `--version`.
///
/// `gcc (Debian 12.2.0-14) 12.2.0` and `cc (GCC) 13.1.1 20230614 (Red Hat)` end in the version and more; clang's comes
/// behind the word.
fn parse_title(line: &str) -> Option<String> {
    let kind = match line {
        _ if line.contains("clang") => "clang",
        _ if ["gcc", "cc"]
            .iter()
            .any(|name| line.split([' ', '-']).any(|word| word == *name))
            || line.contains("(GCC)") =>
        {
            "gcc"
        }
        _ => line.split(' ').next()?,
    };
    let outside = outside_parentheses(line);
    let version = outside
        .split([' ', '-'])
        .find(|word| word.contains('.') && word.bytes().all(|b| b.is_ascii_digit() || b == b'.'))?;
    Some(format!("{kind} {version}"))
}

fn outside_parentheses(line: &str) -> String {
    let mut depth = 0;
    let outside = |c: &char| {
        let before = depth;
        depth += i32::from(*c == '(') - i32::from(*c == ')');
        (before, depth) == (0, 0)
    };
    line.chars().filter(outside).collect()
}

/// Builds the program, or says in one line why not.
fn run_compiler(
    compiler: &Compiler,
    cflags: &str,
    source: &Path,
    program: &Path,
) -> Result<(), String> {
    let mut command = Command::new(&compiler.file);
    command
        .args(cflags.split_whitespace())
        .arg("-o")
        .args([program, source])
        .env("LC_ALL", "C");
    let output = child::run_bounded(
        child::die_with_parent(&mut command),
        Instant::now() + DEADLINE,
    )
    .map_err(|e| format!("cannot start the compiler {}: {e}", compiler.file.display()))?;
    match output.status {
        Some(status) if status.success() && program.exists() => Ok(()),
        Some(status) => Err(
            first_error(&String::from_utf8_lossy(&output.stderr), source).unwrap_or_else(|| {
                format!(
                    "the compiler {} ended with {status} and made no program",
                    compiler.file.display()
                )
            }),
        ),
        None => {
            let (file, seconds) = (compiler.file.display(), DEADLINE.as_secs());
            Err(format!(
                "the compiler {file} did not end within {seconds} s and was killed"
            ))
        }
    }
}

/// The first line that names an error, else the first line; without the private directory's path.
fn first_error(stderr: &str, source: &Path) -> Option<String> {
    let lines = || {
        stderr
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
    };
    let line = lines()
        .find(|line| line.contains("error"))
        .or_else(|| lines().next())?;
    let dir = source
        .parent()
        .map(|dir| format!("{}/", dir.display()))
        .unwrap_or_default();
    let line = if dir.is_empty() {
        line.to_owned()
    } else {
        line.replace(&dir, "")
    };
    Some(text::clean(&line).chars().take(200).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_from_the_first_line_of_the_version() {
        for (line, title) in [
            ("gcc (Debian 12.2.0-14+deb12u1) 12.2.0", "gcc 12.2.0"),
            ("cc (GCC) 13.1.1 20230614 (Red Hat 13.1.1-4)", "gcc 13.1.1"),
            ("gcc-12 (Debian 12.2.0-14) 12.2.0", "gcc 12.2.0"),
            (
                "x86_64-linux-gnu-gcc-12 (Debian 12.2.0-14) 12.2.0",
                "gcc 12.2.0",
            ),
            ("Debian clang version 14.0.6", "clang 14.0.6"),
            ("Ubuntu clang version 18.1.3 (1ubuntu1)", "clang 18.1.3"),
            ("clang version 17.0.6-3", "clang 17.0.6"),
            ("tcc version 0.9.27 (x86_64 Linux)", "tcc 0.9.27"),
        ] {
            assert_eq!(parse_title(line).as_deref(), Some(title), "{line}");
        }
        assert_eq!(parse_title("no version here"), None);
    }

    #[test]
    fn the_first_error_line_is_told_without_the_private_directory() {
        let source = Path::new("/tmp/private/flops.c");
        let text = "/tmp/private/flops.c: In function 'main':\n/tmp/private/flops.c:3:9: error: unknown type\n";
        assert_eq!(
            first_error(text, source).unwrap(),
            "flops.c:3:9: error: unknown type"
        );
        assert_eq!(first_error("\nstrange\n", source).unwrap(), "strange");
        assert_eq!(first_error("  \n", source), None);
    }

    #[test]
    fn a_compiler_missing_or_failing_is_a_failed_row_with_reason() {
        let dir = tempfile::tempdir().unwrap();
        let probe = crate::find(FLOPS).unwrap();
        let compile = |cc: &str| Compile {
            cc: Some(vec![cc.into()]),
            cflags: "-O2".into(),
            modules: vec![Param::Int(1)],
            probe,
        };
        let built = build(&compile("/nowhere/gcc"), dir.path()).unwrap();
        assert!(built.rows.is_empty());
        assert_eq!(
            (built.failed.len(), built.failed[0].outcome),
            (1, Outcome::Failed)
        );
        assert!(
            built.failed[0]
                .reason
                .as_ref()
                .unwrap()
                .contains("/nowhere/gcc")
        );
        let built = build(&compile("false"), dir.path()).unwrap();
        assert!(
            built.failed[0]
                .reason
                .as_ref()
                .unwrap()
                .contains("made no program"),
            "{:?}",
            built.failed[0].reason
        );
    }
}
