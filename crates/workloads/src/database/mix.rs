//! What a simulated user does: the statements, and in which proportion they come.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use crate::database::connection::{Arg, Bound, Connection, QueryError};
use crate::database::data::{self, FORUMS, Shape, Text};
use crate::database::zipf::Zipf;

/// A statement that every engine prepares once for each connection.
#[derive(Debug, PartialEq, Eq)]
pub struct Statement {
    /// The text, with `?` for each parameter.
    pub sql: &'static str,
    /// Fewer rows than this are a wrong answer.
    pub at_least: u64,
}

/// The statements. The constants below are their places.
pub static STATEMENTS: [Statement; 14] = [
    Statement {
        sql: "SELECT signature FROM members WHERE id = ?",
        at_least: 1,
    },
    Statement {
        sql: "SELECT name, joined, posts FROM members WHERE id = ?",
        at_least: 1,
    },
    Statement {
        sql: "SELECT title, forum, author, replies, views FROM threads WHERE id = ?",
        at_least: 1,
    },
    Statement {
        sql: "SELECT id, title, replies FROM threads WHERE id BETWEEN ? AND ?",
        at_least: 1,
    },
    Statement {
        sql: "SELECT id, title, author, replies, last_post FROM threads WHERE forum = ? ORDER BY last_post DESC LIMIT \
            20",
        at_least: 1,
    },
    Statement {
        sql: "SELECT p.id, p.created, p.body, m.name, m.posts FROM posts p JOIN members m ON m.id = p.author \
              WHERE p.thread = ? ORDER BY p.id LIMIT 10",
        at_least: 0,
    },
    Statement {
        sql: "SELECT author, COUNT(*) FROM (SELECT author FROM posts WHERE thread = ? ORDER BY id DESC LIMIT 100) \
            latest \
              GROUP BY author ORDER BY COUNT(*) DESC, author LIMIT 5",
        at_least: 0,
    },
    Statement {
        sql: "SELECT forum, COUNT(*), SUM(replies), MAX(last_post) FROM threads WHERE author = ? GROUP BY forum",
        at_least: 0,
    },
    Statement {
        sql: "INSERT INTO posts (id, thread, author, created, body) VALUES (?, ?, ?, ?, ?)",
        at_least: 0,
    },
    Statement {
        sql: "UPDATE threads SET replies = replies + 1, last_post = ? WHERE id = ?",
        at_least: 0,
    },
    Statement {
        sql: "UPDATE members SET posts = posts + 1 WHERE id = ?",
        at_least: 0,
    },
    Statement {
        sql: "UPDATE posts SET body = ? WHERE id = ?",
        at_least: 0,
    },
    Statement {
        sql: "UPDATE threads SET views = views + 1 WHERE id = ?",
        at_least: 0,
    },
    Statement {
        sql: "INSERT INTO members (id, name, joined, posts, signature) VALUES (?, ?, ?, 0, ?)",
        at_least: 0,
    },
];

/// Place of the point look-up.
pub const SIGNATURE: usize = 0;
const MEMBER: usize = 1;
const THREAD: usize = 2;
const THREAD_RANGE: usize = 3;
const FRONT_PAGE: usize = 4;
const THREAD_PAGE: usize = 5;
const TOP_POSTERS: usize = 6;
const AUTHOR_FORUMS: usize = 7;
const INSERT_POST: usize = 8;
const UPDATE_THREAD: usize = 9;
const UPDATE_MEMBER: usize = 10;
const EDIT_POST: usize = 11;
const COUNT_VIEW: usize = 12;
const INSERT_MEMBER: usize = 13;

/// The proportions of what users do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mix {
    /// Look-ups, ranges, orders, groups and joins: the article's "select, grouping and ordering read intensive
    /// queries". Nothing is written. A transaction is one query.
    #[default]
    Read,
    /// Replies, edits, views counted and members joining, each a transaction with a commit, and some reading between
    /// them.
    Write,
    /// One look-up by primary key and nothing else: what a server and a client need at the least.
    Point,
}

impl Mix {
    /// The name as `--set mix=` takes it.
    pub fn as_str(self) -> &'static str {
        ["read", "write", "point"][self as usize]
    }

    /// The mix of this name.
    pub fn parse(name: &str) -> Option<Mix> {
        [Mix::Read, Mix::Write, Mix::Point]
            .into_iter()
            .find(|mix| mix.as_str() == name)
    }
}

/// What all users of one server share: the popularity of things, and the next numbers to give to new rows.
#[derive(Clone, Debug)]
pub struct Site {
    threads: Zipf,
    members: Zipf,
    text: Arc<Text>,
    shape: Shape,
    next_post: Arc<AtomicI64>,
    next_member: Arc<AtomicI64>,
}

impl Site {
    /// The site as it was loaded.
    pub fn new(scale: u32, seed: u64) -> Site {
        let shape = Shape::at(scale);
        Site {
            threads: Zipf::new(shape.threads),
            members: Zipf::new(shape.members),
            text: Arc::new(Text::new(seed)),
            shape,
            next_post: Arc::new(AtomicI64::new(shape.posts as i64 + 1)),
            next_member: Arc::new(AtomicI64::new(shape.members as i64 + 1)),
        }
    }

    /// With numbers for new rows that so many load generators before did not give.
    pub fn after(self, before: u32) -> Site {
        for next in [&self.next_post, &self.next_member] {
            next.fetch_add(i64::from(before) * data::NUMBERS as i64, Ordering::Relaxed);
        }
        self
    }
}

/// One simulated user.
#[derive(Debug)]
pub struct User {
    site: Site,
    mix: Mix,
    rng: fastrand::Rng,
}

impl User {
    /// A user of a site who acts as `mix` and `seed` say.
    pub fn new(site: &Site, mix: Mix, seed: u64) -> User {
        User {
            site: site.clone(),
            mix,
            rng: fastrand::Rng::with_seed(seed),
        }
    }

    /// Does one thing that the mix has: one transaction. After an error the transaction is rolled back.
    pub fn act(&mut self, on: &mut dyn Connection) -> Result<(), QueryError> {
        match self.mix {
            Mix::Point => {
                let id = self.rng.i64(1..=self.site.shape.members as i64);
                query(on, SIGNATURE, &[Arg::Int(id)])
            }
            Mix::Read => self.read(on),
            Mix::Write => self.write(on),
        }
    }

    /// One query of the read-intensive mix.
    fn read(&mut self, on: &mut dyn Connection) -> Result<(), QueryError> {
        let kind = self.rng.u8(..100);
        let (thread, member) = (&self.site.threads, &self.site.members);
        match kind {
            0..25 => query(on, MEMBER, &[Arg::Int(member.draw(&mut self.rng))]),
            25..40 => query(on, THREAD, &[Arg::Int(thread.draw(&mut self.rng))]),
            40..50 => {
                let from = thread.draw(&mut self.rng);
                query(on, THREAD_RANGE, &[Arg::Int(from), Arg::Int(from + 49)])
            }
            50..65 => query(on, FRONT_PAGE, &[Arg::Int(self.rng.i64(1..=FORUMS))]),
            65..90 => query(on, THREAD_PAGE, &[Arg::Int(thread.draw(&mut self.rng))]),
            90..97 => query(on, TOP_POSTERS, &[Arg::Int(thread.draw(&mut self.rng))]),
            _ => query(on, AUTHOR_FORUMS, &[Arg::Int(member.draw(&mut self.rng))]),
        }
    }

    /// One transaction of the write-heavy mix.
    fn write(&mut self, on: &mut dyn Connection) -> Result<(), QueryError> {
        let kind = self.rng.u8(..100);
        if kind < 15 {
            return self.read(on);
        }
        on.bound(Bound::Begin)?;
        let done = match kind {
            15..65 => self.reply(on),
            65..80 => self.edit(on),
            80..95 => query(
                on,
                COUNT_VIEW,
                &[Arg::Int(self.site.threads.draw(&mut self.rng))],
            ),
            _ => self.join(on),
        };
        match done.and_then(|()| on.bound(Bound::Commit)) {
            Ok(()) => Ok(()),
            Err(error) => {
                if !error.fatal {
                    on.bound(Bound::Rollback)?;
                }
                Err(error)
            }
        }
    }

    /// A member reads a thread and answers. Rows are changed in the same order everywhere (posts, threads, members), so
    /// that transactions wait for each other and do not lock each other out.
    fn reply(&mut self, on: &mut dyn Connection) -> Result<(), QueryError> {
        let (thread, author) = (
            self.site.threads.draw(&mut self.rng),
            self.site.members.draw(&mut self.rng),
        );
        let id = self.site.next_post.fetch_add(1, Ordering::Relaxed);
        let created = data::created(id as u64);
        query(on, THREAD, &[Arg::Int(thread)])?;
        let body = self.site.text.body(&mut self.rng);
        query(
            on,
            INSERT_POST,
            &[
                Arg::Int(id),
                Arg::Int(thread),
                Arg::Int(author),
                Arg::Int(created),
                Arg::Text(body),
            ],
        )?;
        query(on, UPDATE_THREAD, &[Arg::Int(created), Arg::Int(thread)])?;
        query(on, UPDATE_MEMBER, &[Arg::Int(author)])
    }

    /// A post that was there from the beginning gets another text.
    fn edit(&mut self, on: &mut dyn Connection) -> Result<(), QueryError> {
        let id = self.rng.i64(1..=self.site.shape.posts as i64);
        let body = self.site.text.body(&mut self.rng);
        query(on, EDIT_POST, &[Arg::Text(body), Arg::Int(id)])
    }

    /// A new member.
    fn join(&mut self, on: &mut dyn Connection) -> Result<(), QueryError> {
        let id = self.site.next_member.fetch_add(1, Ordering::Relaxed);
        let name = format!("member {id}");
        query(
            on,
            INSERT_MEMBER,
            &[
                Arg::Int(id),
                Arg::Text(&name),
                Arg::Int(data::created(0)),
                Arg::Text("new here"),
            ],
        )
    }
}

/// Runs a statement and checks that the answer can be right.
#[inline]
fn query(on: &mut dyn Connection, statement: usize, args: &[Arg]) -> Result<(), QueryError> {
    let rows = on.query(statement, args)?;
    if rows < STATEMENTS[statement].at_least {
        return Err(QueryError::wrong(format!(
            "{rows} rows for “{}”",
            STATEMENTS[statement].sql
        )));
    }
    Ok(())
}

/// Answers at once with as many rows as are asked for: what remains is the cost of the generator itself.
#[derive(Debug, Default)]
pub struct Nowhere;

impl Connection for Nowhere {
    fn query(&mut self, _statement: usize, args: &[Arg]) -> Result<u64, QueryError> {
        std::hint::black_box(args);
        Ok(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes down what it is asked, and fails a statement when told to.
    #[derive(Default)]
    struct Listener {
        said: Vec<String>,
        fail: Option<usize>,
    }

    impl Connection for Listener {
        fn query(&mut self, statement: usize, args: &[Arg]) -> Result<u64, QueryError> {
            assert_eq!(
                STATEMENTS[statement].sql.matches('?').count(),
                args.len(),
                "{}",
                STATEMENTS[statement].sql
            );
            self.said.push(statement.to_string());
            if self.fail == Some(statement) {
                Err(QueryError::refused("deadlock", String::new()))
            } else {
                Ok(1)
            }
        }
        fn bound(&mut self, bound: Bound) -> Result<(), QueryError> {
            self.said.push(bound.sql().to_lowercase());
            Ok(())
        }
    }

    fn act(mix: Mix, times: usize, on: &mut Listener) -> Vec<Result<(), QueryError>> {
        let mut user = User::new(&Site::new(1, 3), mix, 9);
        (0..times).map(|_| user.act(on)).collect()
    }

    #[test]
    fn the_reading_mix_selects_joins_and_writes_nothing() {
        let mut on = Listener::default();
        assert!(act(Mix::Read, 2000, &mut on).iter().all(Result::is_ok));
        let seen: std::collections::BTreeSet<String> = on.said.iter().cloned().collect();
        let expected = [
            MEMBER,
            THREAD,
            THREAD_RANGE,
            FRONT_PAGE,
            THREAD_PAGE,
            TOP_POSTERS,
            AUTHOR_FORUMS,
        ];
        assert_eq!(seen, expected.iter().map(usize::to_string).collect());
        assert_eq!(on.said.len(), 2000);
    }

    #[test]
    fn the_writing_mix_commits_what_it_begins() {
        let mut on = Listener::default();
        assert!(act(Mix::Write, 2000, &mut on).iter().all(Result::is_ok));
        let count = |word: &str| on.said.iter().filter(|s| *s == word).count();
        assert_eq!(count("begin"), count("commit"));
        assert!(
            (1600..1800).contains(&count("begin")),
            "{} of 2000 transactions write",
            count("begin")
        );
        assert!((900..1100).contains(&count(&INSERT_POST.to_string())));
    }

    #[test]
    fn a_failed_transaction_is_rolled_back() {
        let mut on = Listener {
            fail: Some(UPDATE_THREAD),
            ..Listener::default()
        };
        let failed = act(Mix::Write, 500, &mut on)
            .iter()
            .filter(|r| r.is_err())
            .count();
        assert!(failed > 100);
        assert_eq!(on.said.iter().filter(|s| *s == "rollback").count(), failed);
    }

    /// Each round of a run has another load generator, which goes on where the ones before ended.
    #[test]
    fn what_any_generator_of_a_run_writes_fits_its_column() {
        struct Column;
        impl Connection for Column {
            fn query(&mut self, _: usize, args: &[Arg]) -> Result<u64, QueryError> {
                for arg in args {
                    let Arg::Int(n) = arg else { continue };
                    assert!(i32::try_from(*n).is_ok(), "{n} is more than a column holds");
                }
                Ok(1)
            }
        }
        for before in [0, 1, 2, 17, 200] {
            let mut user = User::new(&Site::new(1, 3).after(before), Mix::Write, 9);
            for _ in 0..500 {
                user.act(&mut Column).unwrap();
            }
        }
    }

    #[test]
    fn too_few_rows_are_a_wrong_answer() {
        struct Empty;
        impl Connection for Empty {
            fn query(&mut self, _: usize, _: &[Arg]) -> Result<u64, QueryError> {
                Ok(0)
            }
        }
        let error = User::new(&Site::new(1, 3), Mix::Point, 9)
            .act(&mut Empty)
            .unwrap_err();
        assert_eq!(error.kind, "wrong answer");
    }
}
