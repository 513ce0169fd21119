//! Passwords and tokens: a type that does not print them, and rules that cut them out of command lines and texts.
//!
//! The rules know the usual shapes: `scheme://user:PASSWORD@host`, `password=…` in an address or a setting,
//! `--token …`, `PGPASSWORD=…`, `mysql -pPASSWORD`, `curl -u user:PASSWORD`, `Authorization: …`, and tokens that begin
//! as their issuers have them begin. What is cut is replaced by [`HIDDEN`]. They cut too much rather than too little:
//! what is lost is a word in a command line.

use std::borrow::Cow;
use std::fmt;

use serde::{Serialize, Serializer};

use crate::service::{self, Password};
use crate::{Param, Params, Run};

/// What stands where a secret stood.
pub const HIDDEN: &str = "***";

/// A password or token. However it is printed or serialized, it is [`HIDDEN`]; only [`Secret::reveal`] gives it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Takes a secret out of circulation.
    pub fn new(text: impl Into<String>) -> Secret {
        Secret(text.into())
    }

    /// The secret itself, for the one place that needs it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HIDDEN)
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HIDDEN)
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(HIDDEN)
    }
}

/// Whether a variable, flag or parameter of this name holds a secret: `PGPASSWORD`, `api-key`, `MYSQL_PWD`. The name of
/// a file with a password in it is none.
pub fn is_secret_name(name: &str) -> bool {
    let name: String = name
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|c| c.to_ascii_lowercase())
        .collect();
    if ["file", "path", "dir", "pwd"]
        .iter()
        .any(|end| name.ends_with(end))
        && !name.ends_with("sqlpwd")
    {
        return false;
    }
    const WITHIN: [&str; 9] = [
        "password",
        "passwd",
        "passphrase",
        "passcode",
        "secret",
        "apikey",
        "accesskey",
        "privatekey",
        "credential",
    ];
    WITHIN.iter().any(|part| name.contains(part))
        || name.ends_with("token")
        || name == "pass"
        || name.ends_with("sqlpwd")
}

/// The words of a command line without the secrets in them.
pub fn cut_words<'a>(words: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut state = State::default();
    // A word with blanks in it is a script or a header: a text of its own.
    let is_text = |word: &str| word.contains(char::is_whitespace);
    words
        .into_iter()
        .map(|word| {
            if is_text(word) {
                state.text(word)
            } else {
                state.word(word)
            }
        })
        .collect()
}

/// A text without the secrets in it.
pub fn cut(text: &str) -> Cow<'_, str> {
    if !may_hold_one(text) {
        return Cow::Borrowed(text);
    }
    let new = State::default().within(text);
    if new == text {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(new)
    }
}

/// Cuts the secrets out of every text of a run that a user's words can have come into.
pub fn cut_run(run: &mut Run) {
    run.command = cut_words(run.command.iter().map(String::as_str));
    for row in &mut run.measurements {
        cut_params(&mut row.params);
        row.reason.iter_mut().for_each(cut_in_place);
    }
    for observation in &mut run.observations {
        cut_in_place(&mut observation.workload);
        cut_in_place(&mut observation.source);
        cut_params(&mut observation.params);
    }
    for budget in &mut run.budgets {
        cut_in_place(&mut budget.workload);
        cut_params(&mut budget.params);
        budget
            .parts
            .iter_mut()
            .filter_map(|part| part.component.text_mut())
            .for_each(cut_in_place);
    }
    for paths in &mut run.paths {
        cut_params(&mut paths.params);
        crate::paths::valid::texts(paths)
            .into_iter()
            .for_each(cut_in_place);
    }
    for under_way in &mut run.under_way {
        cut_params(&mut under_way.params);
        crate::under_way::texts(under_way)
            .into_iter()
            .for_each(cut_in_place);
    }
    for finding in &mut run.findings {
        cut_in_place(&mut finding.cause);
        for fact in &mut finding.evidence {
            cut_params(&mut fact.params);
            fact.texts().for_each(cut_in_place);
        }
    }
    for experiment in &mut run.experiments {
        cut_params(&mut experiment.params);
        [&mut experiment.workload, &mut experiment.what]
            .into_iter()
            .chain(&mut experiment.reason)
            .for_each(cut_in_place);
    }
}

fn cut_params(params: &mut Params) {
    for (name, value) in &mut params.0 {
        match value {
            Param::Text(text) if is_secret_name(name) => HIDDEN.clone_into(text),
            Param::Text(text) => cut_in_place(text),
            Param::Int(_) => {}
        }
    }
}

fn cut_in_place(text: &mut String) {
    if let Cow::Owned(new) = cut(text) {
        *text = new;
    }
}

/// Nearly every text of a record is told apart from those that matter without being taken apart.
fn may_hold_one(text: &str) -> bool {
    text.bytes().any(|b| matches!(b, b'=' | b':' | b'-' | b'_'))
}

/// Programs whose `-pX` is a password, besides the clients of services.
const PASSWORD_IN_P: [&str; 1] = ["sshpass"];
/// How tokens of well-known issuers begin.
const TOKENS: [&str; 7] = [
    "ghp_",
    "gho_",
    "ghs_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
];

/// What the words so far say about the next one.
#[derive(Default)]
struct State {
    next: Next,
    program: Program,
}

#[derive(Clone, Copy, Default, PartialEq)]
enum Next {
    #[default]
    Ordinary,
    /// It is a secret whole.
    Secret,
    /// It is `user:password`.
    Login,
    /// It is the scheme of an authorization, `Bearer` or `Basic`, or the secret itself.
    Authorization,
}

#[derive(Clone, Copy, Default, PartialEq)]
enum Program {
    #[default]
    Other,
    PasswordInP,
    PasswordBehind(&'static [&'static str]),
    Curl,
}

impl State {
    /// A whole word with blanks in it: either expected to be a secret, or a text of its own.
    fn text(&mut self, word: &str) -> String {
        match std::mem::take(&mut self.next) {
            Next::Secret => HIDDEN.to_owned(),
            Next::Login => after_colon(word),
            _ => State {
                program: self.program,
                next: Next::Ordinary,
            }
            .within(word),
        }
    }

    /// Every word of a text, with what is between them kept.
    fn within(&mut self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while !rest.is_empty() {
            let (word, after) = rest.split_at(word_end(rest));
            let (quote, bare) = unquoted(word);
            out.push_str(quote);
            match bare {
                "" => {}
                // In quotes stands a text of its own; a quote further on belongs to the word.
                _ if !quote.is_empty() && bare.contains(char::is_whitespace) => {
                    out.push_str(&self.text(bare))
                }
                _ => out.push_str(&self.word(bare)),
            }
            out.push_str(quote);
            let next = after
                .find(|c: char| !c.is_whitespace())
                .unwrap_or(after.len());
            out.push_str(&after[..next]);
            rest = &after[next..];
        }
        out
    }

    /// One word without blanks.
    fn word(&mut self, word: &str) -> String {
        match std::mem::take(&mut self.next) {
            Next::Secret => return HIDDEN.to_owned(),
            Next::Login => return after_colon(word),
            Next::Authorization => {
                let is_scheme = ["bearer", "basic", "token", "digest"]
                    .contains(&word.to_ascii_lowercase().as_str());
                self.next = if is_scheme {
                    Next::Secret
                } else {
                    Next::Ordinary
                };
                return if is_scheme { word } else { HIDDEN }.to_owned();
            }
            Next::Ordinary => {}
        }
        self.notice_program(word);
        if word.to_ascii_lowercase().ends_with("authorization:") {
            self.next = Next::Authorization;
            return word.to_owned();
        }
        if let Some(flag) = word.strip_prefix('-') {
            return self.flag(word, flag);
        }
        cut_word(word)
    }

    fn notice_program(&mut self, word: &str) {
        let name = word.rsplit('/').next().unwrap_or(word);
        let is_plain = !word.contains([':', '=']);
        let of_its_own = || PASSWORD_IN_P.iter().any(|p| name.starts_with(p));
        match service::password_of(name) {
            Some(Password::Behind(flags)) => self.program = Program::PasswordBehind(flags),
            Some(Password::WithinP) if is_plain => self.program = Program::PasswordInP,
            None if is_plain && of_its_own() => self.program = Program::PasswordInP,
            None if name == "curl" || name == "wget" => self.program = Program::Curl,
            _ => {}
        }
    }

    fn flag(&mut self, word: &str, flag: &str) -> String {
        let long = flag.starts_with('-');
        let name = flag.trim_start_matches('-');
        match (self.program, name) {
            (Program::Curl, "u" | "user" | "U" | "proxy-user") => self.next = Next::Login,
            (Program::PasswordBehind(flags), _) if flags.contains(&name) => {
                self.next = Next::Secret;
            }
            (Program::PasswordInP, _) if !long && name.len() > 1 && name.starts_with('p') => {
                return "-p***".to_owned();
            }
            (Program::Curl, _) if !long && name.len() > 1 && name.starts_with('u') => {
                return after_colon(word);
            }
            _ if !name.contains('=') && is_secret_name(name) => self.next = Next::Secret,
            (Program::Curl, _) if name.starts_with("user=") => return after_colon(word),
            _ => {}
        }
        cut_word(word)
    }
}

/// Where the first word of a text ends. Blanks between quotes do not end it; an apostrophe within a word is no quote.
fn word_end(text: &str) -> usize {
    let (mut open, mut before) = (None, ' ');
    for (at, c) in text.char_indices() {
        match open {
            Some(quote) if c == quote => open = None,
            Some(_) => {}
            None if c.is_whitespace() => return at,
            None => {
                let may_open = matches!(c, '"' | '\'')
                    && (!before.is_alphanumeric() || text[..at].starts_with('-'));
                open = (may_open && text[at + 1..].contains(c)).then_some(c);
            }
        }
        before = c;
    }
    text.len()
}

/// A word's quotes, where it stands in a pair, and what is between.
fn unquoted(word: &str) -> (&str, &str) {
    let inner = |quote| {
        word.strip_prefix(quote)
            .and_then(|w| w.strip_suffix(quote))
            .map(|inner| (&word[..1], inner))
    };
    ['"', '\'', '`']
        .into_iter()
        .find_map(inner)
        .unwrap_or(("", word))
}

fn after_colon(word: &str) -> String {
    match word.split_once(':') {
        Some((before, _)) => format!("{before}:{HIDDEN}"),
        None => word.to_owned(),
    }
}

/// What can be told from a word alone.
fn cut_word(word: &str) -> String {
    if let Some(at) = word.find("://") {
        return cut_values(&cut_address(word, at));
    }
    match TOKENS
        .iter()
        .filter_map(|t| word.find(t).map(|at| at + t.len()))
        .min()
    {
        Some(end) if word.len() >= end + 12 => format!("{}{HIDDEN}", &word[..end]),
        _ => cut_values(word),
    }
}

/// `scheme://user:PASSWORD@host`, anywhere in a word; `at` is where its `://` stands.
fn cut_address(word: &str, at: usize) -> String {
    let scheme = word[..at]
        .rsplit(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '+' | '.' | '-'))
        .next()
        .unwrap_or_default();
    let is_database = service::has_login(scheme);
    let rest = &word[at + 3..];
    let authority = &rest[..rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len())];
    let end = match authority.rfind('@') {
        // The password may itself hold an @ or a slash: the last @ ends it where nothing else can hold one.
        _ if is_database => match rest.rfind('@') {
            None if may_be_password(authority) => Some(rest.len()),
            end => end,
        },
        Some(end) => Some(end),
        None if may_be_password(authority) => rest.rfind('@'),
        None => None,
    };
    let Some(end) = end else {
        return word.to_owned();
    };
    let kept = match rest[..end].split_once(':') {
        Some((user, _)) => format!("{user}:{HIDDEN}"),
        None if is_database => rest[..end].to_owned(),
        // A token alone stands where the user would.
        None => HIDDEN.to_owned(),
    };
    format!("{}{kept}{}", &word[..at + 3], &rest[end..])
}

/// `user:pa` of `user:pa/ss@host`, and not `host:80`.
fn may_be_password(authority: &str) -> bool {
    let (_, tail) = authority.rsplit_once(':').unwrap_or_default();
    !authority.ends_with(']') && !tail.is_empty() && !tail.bytes().all(|b| b.is_ascii_digit())
}

/// `NAME=VALUE`, also several in an address, as in `--set=url=x?password=y` and `PGPASSWORD=z`.
fn cut_values(word: &str) -> String {
    let mut out = String::with_capacity(word.len());
    // Only an address has several values in one word; elsewhere these characters may be part of a password.
    let ends: &[char] = if word.contains("://") || word.starts_with(['/', '?']) {
        &['&', ';', '?', '#']
    } else {
        &[]
    };
    for piece in word.split_inclusive(ends) {
        let value_end = piece.trim_end_matches(ends).len();
        let mut rest = &piece[..value_end];
        // The first name that holds a secret hides all that follows: the value may have an = in it.
        while let Some((name, value)) = rest.split_once('=') {
            let last = name
                .rsplit([',', ' ', '{', '"', '\''])
                .next()
                .unwrap_or(name);
            if is_secret_name(last) && !value.is_empty() {
                out.extend([name, "=", HIDDEN]);
                rest = "";
                break;
            }
            out.extend([name, "="]);
            rest = value;
        }
        out.push_str(rest);
        out.push_str(&piece[value_end..]);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_prints_as_three_stars_and_is_there_all_the_same() {
        let secret = Secret::new("hunter2");
        assert_eq!(
            format!(
                "{secret} {secret:?} {}",
                serde_json::to_string(&secret).unwrap()
            ),
            "*** *** \"***\""
        );
        assert_eq!(secret.reveal(), "hunter2");
    }

    #[test]
    fn secrets_are_cut_out_of_command_lines() {
        for (line, cut) in [
            (
                "run database --set url=mysql://root:hunter2@db:3306/x",
                "run database --set url=mysql://root:***@db:3306/x",
            ),
            (
                "--set=url=postgres://u:a@b/c@host/db?x=1",
                "--set=url=postgres://u:***@host/db?x=1",
            ),
            ("http://u:p@127.0.0.1/", "http://u:***@127.0.0.1/"),
            ("http://u:p/q@127.0.0.1/", "http://u:***@127.0.0.1/"),
            (
                "https://ghp_0123456789abcdef@github.com/x",
                "https://***@github.com/x",
            ),
            ("mysql://root@h/x", "mysql://root@h/x"),
            ("mysql://h:3306/x", "mysql://h:3306/x"),
            ("mysql://root:hunter2", "mysql://root:***"),
            (
                "http://127.0.0.1:8080/a@2x.png?b=c",
                "http://127.0.0.1:8080/a@2x.png?b=c",
            ),
            ("http://h/x?token=abc&page=3", "http://h/x?token=***&page=3"),
            ("mysqldump -uroot -phunter2 db", "mysqldump -uroot -p*** db"),
            ("nc -p8080", "nc -p8080"),
            ("pgbench --password=hunter2", "pgbench --password=***"),
            ("tool --api-key hunter2 x", "tool --api-key *** x"),
            (
                "env PGPASSWORD=hunter2 MYSQL_PWD=b PWD=/x psql",
                "env PGPASSWORD=*** MYSQL_PWD=*** PWD=/x psql",
            ),
            ("curl -u bob:hunter2 http://h", "curl -u bob:*** http://h"),
            (
                "curl -ubob:hunter2 --user=bob:x",
                "curl -ubob:*** --user=bob:***",
            ),
            ("redis-cli -a hunter2 ping", "redis-cli -a *** ping"),
            ("sshpass -phunter2 ssh h", "sshpass -p*** ssh h"),
            ("--set password_file=/etc/x", "--set password_file=/etc/x"),
            (
                "--set key_buffer_size=16M --profile quick",
                "--set key_buffer_size=16M --profile quick",
            ),
            ("x ghp_0123456789abcdef y", "x ghp_*** y"),
            (
                "it's a page: password=a b, don't",
                "it's a page: password=*** b, don't",
            ),
        ] {
            assert_eq!(cut_words(line.split(' ')).join(" "), cut, "{line}");
            assert_eq!(super::cut(line), cut, "as a text: {line}");
        }
    }

    #[test]
    fn a_script_in_one_word_and_a_header_are_texts_of_their_own() {
        let words = [
            "sh",
            "-c",
            "mysql -uroot -p'hunter2' && PGPASSWORD=\"a\" psql 'postgres://u:b@h/x'",
        ];
        assert_eq!(
            cut_words(words)[2],
            "mysql -uroot -p*** && PGPASSWORD=*** psql 'postgres://u:***@h/x'"
        );
        assert_eq!(
            cut("sh -c 'mysql -p\"a b\" x' --password='c d'"),
            "sh -c 'mysql -p*** x' --password=***"
        );
        let words = [
            "curl",
            "-H",
            "Authorization: Bearer abc.def",
            "--password",
            "two words",
        ];
        assert_eq!(
            cut_words(words),
            [
                "curl",
                "-H",
                "Authorization: Bearer ***",
                "--password",
                "***"
            ]
        );
    }

    #[test]
    fn a_secret_in_any_text_of_a_fact_is_cut_out() {
        let hidden = "mysql --password=hunter2";
        let mut run = crate::fixture::run();
        let fact = crate::Evidence::of(crate::Metric::Changed)
            .named(hidden)
            .changing(hidden, hidden)
            .among([hidden])
            .about(hidden)
            .saying(hidden);
        run.findings = vec![crate::Finding::ruled_out(
            "app.setting",
            crate::Layer::Application,
            fact,
        )];
        cut_run(&mut run);
        let text = serde_json::to_string(&run).unwrap();
        assert!(!text.contains("hunter2"), "{text}");
    }

    #[test]
    fn cutting_twice_changes_nothing_more() {
        for text in ["mysql://u:***@h/x", "--password=***", "curl -u a:*** x"] {
            assert_eq!(cut(text), text);
        }
    }
}
