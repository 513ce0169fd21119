//! The manifest: which applications are launched, in which order, and when each is ready.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use fingerpost_record::suggest;
use fingerpost_sys::sum::checksum;
use fingerpost_workloads::programs::{self, is_program, postgresql_versions};
use regex_lite::Regex;
use serde::Deserialize;

/// The applications that are launched when the user names none.
const DEFAULT: &str = include_str!("default.toml");
/// Those that stand for the source's ten, by kind.
const KINDS: &str = include_str!("kinds.toml");
/// The manifest's name that means these.
pub const PUBLISHED: &str = "published";
/// How many the source launched.
const USUAL: usize = 10;
/// More than any sequence needs; a manifest with more is a mistake.
const MOST: usize = 200;

/// One application.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct App {
    /// Its name in the table.
    pub name: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Variables added to its environment.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    pub ready: Ready,
    /// How long it may take, in seconds.
    #[serde(default = "half_a_minute")]
    pub timeout: u64,
    /// Commands that are run once before everything, untimed.
    #[serde(default)]
    pub prepare: Vec<Vec<String>>,
    /// Commands that are run before each sequence, untimed.
    #[serde(default)]
    pub setup: Vec<Vec<String>>,
    /// Whether it refuses to run as root: it is then run as an unprivileged user.
    #[serde(default)]
    pub unprivileged: bool,
    /// The application of the source that it stands for; of several with the same, one is launched.
    #[serde(default)]
    kind: Option<String>,
}

/// What ready means.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ready {
    /// It ended, with status 0.
    Exit,
    /// It wrote a line that this regular expression matches, on standard output or error.
    Line(String),
    /// This TCP port of 127.0.0.1 takes connections.
    Port(PortSpec),
    /// This Unix socket takes connections.
    Socket(String),
    /// This file exists.
    File(String),
    /// It showed a window on the X display of its `DISPLAY`.
    Window,
}

/// A port as a manifest writes it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum PortSpec {
    Number(u16),
    /// A number in quotes, or `{port}`.
    Word(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Manifest {
    app: Vec<App>,
}

fn half_a_minute() -> u64 {
    30
}

/// What the words in braces stand for.
#[derive(Clone, Debug)]
pub struct Places {
    /// `{dir}`: fresh for each sequence.
    pub dir: PathBuf,
    /// `{data}`: kept over the sequences.
    pub data: PathBuf,
    /// What it writes on standard output and error goes here: a directory of ours, where the application cannot write.
    pub output: PathBuf,
    /// `{port}`: free a moment ago.
    pub port: u16,
}

impl Places {
    /// A text with its words in braces replaced.
    pub fn fill(&self, text: &str) -> String {
        let replaced = text
            .replace("{dir}", &self.dir.to_string_lossy())
            .replace("{data}", &self.data.to_string_lossy());
        replaced.replace("{port}", &self.port.to_string())
    }
}

/// The applications of a user's manifest, and what rows call it.
///
/// # Errors
/// A sentence that says what is wrong with it, and where.
pub fn read(path: &Path) -> Result<(Vec<App>, String), String> {
    let meant = || suggest::of_listed(&path.to_string_lossy(), PUBLISHED);
    let text = std::fs::read_to_string(path).map_err(|e| {
        format!(
            "cannot read the manifest {}: {e}{}",
            path.display(),
            meant()
        )
    })?;
    let apps = parse(&text).map_err(|e| format!("the manifest {}: {e}", path.display()))?;
    Ok((apps, called(path, &text)))
}

/// The file's name without its ending, and eight digits of its content: rows of two manifests are not the same rows,
/// and those of one are, wherever it lies.
fn called(path: &Path, text: &str) -> String {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let plain: String = stem
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
        .take(40)
        .collect();
    format!("{plain}.{:08x}", checksum(text.as_bytes()) as u32)
}

/// The applications of a manifest's text.
pub fn parse(text: &str) -> Result<Vec<App>, String> {
    let manifest: Manifest =
        toml::from_str(text).map_err(|e| e.to_string().trim().replace('\n', " "))?;
    if manifest.app.is_empty() || manifest.app.len() > MOST {
        return Err(format!(
            "it names {} applications; name 1 to {MOST} as [[app]]",
            manifest.app.len()
        ));
    }
    for (i, app) in manifest.app.iter().enumerate() {
        check(app).map_err(|e| format!("application {} (`{}`): {e}", i + 1, app.name))?;
        if manifest.app[..i].iter().any(|other| other.name == app.name) {
            return Err(format!("two applications are called `{}`", app.name));
        }
    }
    Ok(manifest.app)
}

fn check(app: &App) -> Result<(), String> {
    let unusable = |c: char| c.is_control();
    if app.name.is_empty() || app.name.chars().count() > 60 || app.name.contains(unusable) {
        return Err("a name has 1 to 60 characters that can be printed".into());
    }
    if app.command.first().is_none_or(String::is_empty) {
        return Err("`command` names a program, such as [\"sh\", \"-c\", \"true\"]".into());
    }
    if app.prepare.iter().chain(&app.setup).any(Vec::is_empty) {
        return Err("a command of `prepare` or `setup` is empty".into());
    }
    if !(1..=3600).contains(&app.timeout) {
        return Err("`timeout` is 1 to 3600 seconds".into());
    }
    match &app.ready {
        Ready::Line(pattern) => Regex::new(pattern)
            .map(drop)
            .map_err(|e| format!("`line` is no regular expression: {e}")),
        Ready::Port(PortSpec::Word(word)) if word != "{port}" && word.parse::<u16>().is_err() => {
            Err(format!(
                "`{word}` is no port: write a number or \"{{port}}\""
            ))
        }
        _ => Ok(()),
    }
}

/// The default applications, of which those are taken that `installed` finds: the first, and as many of the last as
/// make ten.
pub fn default(installed: impl Fn(&str) -> bool) -> Vec<App> {
    let all = parse(DEFAULT).expect("the default manifest is tested");
    let needs = |app: &App| {
        let programs = app
            .prepare
            .iter()
            .chain(&app.setup)
            .chain(std::iter::once(&app.command));
        programs.map(|words| words[0].clone()).collect::<Vec<_>>()
    };
    let mut apps: Vec<App> = all
        .into_iter()
        .filter(|app| needs(app).iter().all(|program| installed(program)))
        .collect();
    if apps.len() > USUAL {
        apps.drain(1..=apps.len() - USUAL);
    }
    apps
}

/// One application for each kind that the source launched, in its order: the first of the kind that `installed` finds,
/// else the kind's first, which then says in its row what is missing.
pub fn published(installed: impl Fn(&str) -> bool) -> Vec<App> {
    let all = parse(KINDS).expect("the manifest of kinds is tested");
    let of_kind = |kind: &[App]| {
        kind.iter()
            .find(|app| installed(&app.command[0]))
            .unwrap_or(&kind[0])
            .clone()
    };
    all.chunk_by(|a, b| a.kind == b.kind).map(of_kind).collect()
}

/// Finds a program as a shell does, and where servers are that are not on an ordinary user's path.
pub fn find_program(name: &str) -> Option<PathBuf> {
    if name.contains('/') {
        return is_program(Path::new(name)).then(|| PathBuf::from(name));
    }
    programs::find_program(&[name], &[])
        .or_else(|| programs::find_program(&[name], &postgresql_versions()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_users_manifest_is_called_by_its_name_and_content() {
        let of = |path: &str, text: &str| called(Path::new(path), text);
        let one = of("/home/me/apps.toml", "[[app]]");
        assert!(
            one.starts_with("apps.") && one.len() == "apps.".len() + 8,
            "{one}"
        );
        assert_eq!(of("elsewhere/apps.toml", "[[app]]"), one);
        assert_ne!(of("apps.toml", "[[app]]\n"), one);
        assert!(
            of("a b=1;/\u{1b}[31m ä.toml", "").starts_with("31m."),
            "nothing that a row's parameters could not have"
        );
    }

    #[test]
    fn a_manifest_names_every_kind_of_readiness() {
        let text = r#"
            [[app]]
            name = "a"
            command = ["true"]
            ready = "exit"
            [[app]]
            name = "b"
            command = ["b", "{port}"]
            env = { LANG = "C" }
            ready = { line = "^up" }
            timeout = 5
            [[app]]
            name = "c"
            command = ["c"]
            ready = { port = 80 }
            [[app]]
            name = "d"
            command = ["d"]
            ready = { port = "{port}" }
            [[app]]
            name = "e"
            command = ["e"]
            ready = { socket = "{dir}/s" }
            [[app]]
            name = "f"
            command = ["f"]
            ready = { file = "{dir}/f" }
            [[app]]
            name = "g"
            command = ["g"]
            ready = "window"
        "#;
        let apps = parse(text).unwrap();
        let ready: Vec<Ready> = apps.iter().map(|a| a.ready.clone()).collect();
        let port = Ready::Port(PortSpec::Number(80));
        let own = Ready::Port(PortSpec::Word("{port}".into()));
        let (socket, file) = (
            Ready::Socket("{dir}/s".into()),
            Ready::File("{dir}/f".into()),
        );
        assert_eq!(
            ready,
            [
                Ready::Exit,
                Ready::Line("^up".into()),
                port,
                own,
                socket,
                file,
                Ready::Window
            ]
        );
        assert_eq!(
            (
                apps[0].timeout,
                apps[1].timeout,
                apps[1].env["LANG"].as_str()
            ),
            (30, 5, "C")
        );
    }

    #[test]
    fn what_is_wrong_is_said_in_one_sentence_with_its_place() {
        let refused = |text: &str| parse(text).unwrap_err();
        let app = |rest: &str| format!("[[app]]\nname = \"x\"\ncommand = [\"true\"]\n{rest}");
        assert!(refused("app = []").contains("0 applications"));
        assert!(refused(&app("ready = \"never\"")).contains("never"));
        assert!(refused(&app("ready = { line = \"(\" }")).contains("regular expression"));
        assert!(refused(&app("ready = { port = \"http\" }")).contains("`http` is no port"));
        assert!(refused(&app("ready = \"exit\"\ntimeout = 0")).contains("`timeout`"));
        assert!(refused(&app("ready = \"exit\"\nsleep = 3")).contains("sleep"));
        assert!(
            refused(&(app("ready = \"exit\"\n") + &app("ready = \"exit\"")))
                .contains("two applications")
        );
        assert!(
            refused("[[app]]\nname = \"x\"\ncommand = []\nready = \"exit\"")
                .contains("application 1 (`x`)")
        );
        for text in ["", "[[app]]", &app("ready = \"never\"")] {
            assert!(!refused(text).contains('\n'));
        }
    }

    #[test]
    fn the_default_keeps_the_first_and_the_last_of_what_is_installed() {
        let all = default(|_| true);
        assert_eq!(
            (all.len(), all[0].name.as_str(), all[9].name.as_str()),
            (10, "sh", "google-chrome")
        );
        let few = default(|program| program == "sh" || program == "perl");
        assert_eq!(
            few.iter().map(|a| a.name.as_str()).collect::<Vec<_>>(),
            ["sh", "perl"]
        );
        // What prepares an application must be there too.
        assert!(default(|program| program == "postgres").is_empty());
    }

    #[test]
    fn each_of_the_sources_applications_has_one_that_stands_for_it() {
        let all = published(|_| true);
        let kinds: Vec<&str> = all.iter().filter_map(|app| app.kind.as_deref()).collect();
        let run = fingerpost_compare::references::load("launch-10.1").unwrap();
        let of_source: Vec<&str> = run
            .measurements
            .iter()
            .filter(|m| m.params.text("placement") == Some("default"))
            .filter_map(|m| m.params.text("app"))
            .collect();
        assert_eq!(kinds, of_source, "the same ten in the same order");
        for app in parse(KINDS).unwrap() {
            let [theirs, ours] = [app.kind.as_deref().unwrap(), &app.name]
                .map(|name| fingerpost_record::Params::new().with("app", name));
            assert!(
                fingerpost_compare::aliases::matches("launch.time", &theirs, &ours).is_some(),
                "{} for {:?}",
                app.name,
                app.kind
            );
        }
        let names = |apps: &[App]| apps.iter().map(|app| app.name.clone()).collect::<Vec<_>>();
        assert_eq!(
            names(&published(
                |program| program == "chromium" || program == "neomutt"
            ))[1..4],
            ["chromium", "vim", "neomutt"]
        );
    }

    #[test]
    fn words_in_braces_are_filled() {
        let places = Places {
            dir: "/d".into(),
            data: "/k".into(),
            output: "/o".into(),
            port: 7,
        };
        assert_eq!(
            places.fill("{dir}/x {data} {port} {other}"),
            "/d/x /k 7 {other}"
        );
    }

    #[test]
    fn a_program_is_found_and_a_file_that_is_none_is_not() {
        assert!(find_program("sh").is_some());
        assert_eq!(find_program("/etc/passwd"), None);
        assert_eq!(find_program("no-such-program-here"), None);
    }
}
