//! The data set: the forum of a busy site, the same for every engine and every run with the same seed and scale.
//!
//! Members write posts in threads; a few of each get most of them ([`crate::database::zipf`]). Scale 1 is 2,000
//! members, 4,000 threads and 30,000 posts, some 15 MB with indexes: it fits in memory, as the data set of the article
//! did, so that the disk is no limit.

use std::fmt::Write;

use crate::database::connection::{Arg, Connection, QueryError};
use crate::database::zipf::Zipf;

const MEMBERS: u64 = 2_000;
const THREADS: u64 = 4_000;
const POSTS: u64 = 30_000;
/// Boards that threads belong to.
pub const FORUMS: i64 = 20;
/// 1 September 2005, in seconds since 1970: the time of the first post.
const EPOCH: i64 = 1_125_532_800;
/// The length of a member's signature. It is what the point look-up reads, in a size that other benchmarks use for
/// theirs.
const SIGNATURE: usize = 120;

/// The number of rows in each table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Rows of `members`.
    pub members: u64,
    /// Rows of `threads`.
    pub threads: u64,
    /// Rows of `posts`.
    pub posts: u64,
}

impl Shape {
    /// The shape at a scale.
    pub fn at(scale: u32) -> Shape {
        let scale = u64::from(scale);
        Shape {
            members: MEMBERS * scale,
            threads: THREADS * scale,
            posts: POSTS * scale,
        }
    }
}

/// A table: its name, its columns, and the statements that make its indexes.
#[derive(Debug)]
pub struct Table {
    /// The name.
    pub name: &'static str,
    /// Name and type of each column, with commas between, in types that every engine knows. The first is the primary
    /// key.
    columns: &'static str,
    /// Secondary indexes: name and columns.
    pub indexes: &'static [(&'static str, &'static str)],
}

/// The tables, in the order in which they are made.
pub static TABLES: [Table; 3] = [
    Table {
        name: "members",
        columns: "id INTEGER NOT NULL PRIMARY KEY, name VARCHAR(40) NOT NULL, joined INTEGER NOT NULL, \
                  posts INTEGER NOT NULL, signature CHAR(120) NOT NULL",
        indexes: &[],
    },
    Table {
        name: "threads",
        columns: "id INTEGER NOT NULL PRIMARY KEY, forum INTEGER NOT NULL, author INTEGER NOT NULL, title VARCHAR(80) \
            NOT NULL, \
                  created INTEGER NOT NULL, last_post INTEGER NOT NULL, replies INTEGER NOT NULL, views INTEGER NOT \
                  NULL",
        indexes: &[
            ("threads_forum", "forum, last_post"),
            ("threads_author", "author"),
        ],
    },
    Table {
        name: "posts",
        columns: "id INTEGER NOT NULL PRIMARY KEY, thread INTEGER NOT NULL, author INTEGER NOT NULL, \
                  created INTEGER NOT NULL, body VARCHAR(1000) NOT NULL",
        indexes: &[("posts_thread", "thread, id"), ("posts_author", "author")],
    },
];

impl Table {
    /// The statement that makes the table under a name that begins with `prefix`; `options` follows the closing
    /// parenthesis (a storage engine).
    pub fn create(&self, prefix: &str, options: &str) -> String {
        format!(
            "CREATE TABLE {prefix}{} ({}){options}",
            self.name, self.columns
        )
    }

    /// How many columns it has.
    pub fn width(&self) -> usize {
        self.columns.split(", ").count()
    }

    /// The statements that make its indexes, where the names of table and indexes begin with `prefix`.
    pub fn create_indexes<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = String> + 'a {
        self.indexes.iter().map(move |(name, columns)| {
            format!(
                "CREATE INDEX {prefix}{name} ON {prefix}{} ({columns})",
                self.name
            )
        })
    }
}

/// A connection that can do more than what is timed.
pub trait Session: Connection {
    /// Prepares every statement of the mix, which the tables must be there for. An engine that prepares them as they
    /// come has nothing to do here.
    fn prepare(&mut self) -> Result<(), QueryError> {
        Ok(())
    }
    /// Runs a statement as text, whose rows nobody needs.
    fn run(&mut self, sql: &str) -> Result<(), QueryError>;
    /// Makes the tables and fills them.
    fn load(&mut self, data: &Data) -> Result<(), QueryError>;
    /// Version, and the settings that decide about a commit and about caches, in words.
    fn describe(&mut self) -> Result<String, QueryError>;
}

/// All rows, made from a seed.
#[derive(Debug)]
pub struct Data {
    shape: Shape,
    text: Text,
    seed: u64,
    /// Thread and author of each post.
    posts: Vec<(u32, u32)>,
    /// Replies and time of the last post of each thread.
    threads: Vec<(u32, i64)>,
    /// Posts of each member.
    members: Vec<u32>,
}

impl Data {
    /// The data set at a scale.
    pub fn new(scale: u32, seed: u64) -> Data {
        let shape = Shape::at(scale);
        let mut rng = fastrand::Rng::with_seed(seed);
        let (popular_threads, busy_members) = (Zipf::new(shape.threads), Zipf::new(shape.members));
        let posts: Vec<(u32, u32)> = (0..shape.posts)
            .map(|_| {
                (
                    popular_threads.draw(&mut rng) as u32,
                    busy_members.draw(&mut rng) as u32,
                )
            })
            .collect();
        let mut threads = vec![(0, EPOCH); shape.threads as usize];
        let mut members = vec![0; shape.members as usize];
        for (i, (thread, author)) in posts.iter().enumerate() {
            let thread = &mut threads[*thread as usize - 1];
            *thread = (thread.0 + 1, created(i as u64 + 1));
            members[*author as usize - 1] += 1;
        }
        Data {
            shape,
            text: Text::new(seed),
            seed,
            posts,
            threads,
            members,
        }
    }

    /// Hands every row of a table to `row`, in the order of the primary key, until it fails.
    pub fn each_row<E>(
        &self,
        table: &Table,
        mut row: impl FnMut(&[Arg]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut rng = fastrand::Rng::with_seed(self.seed ^ table.name.len() as u64);
        let int = |n: u64| Arg::Int(n as i64);
        match table.name {
            "members" => (1..=self.shape.members).try_for_each(|id| {
                let name = format!("member {id}");
                let posts = self.members[id as usize - 1];
                let signature = self.text.slice(&mut rng, SIGNATURE);
                row(&[
                    int(id),
                    Arg::Text(&name),
                    int(EPOCH as u64 + id),
                    int(posts.into()),
                    Arg::Text(signature),
                ])
            }),
            "threads" => (1..=self.shape.threads).try_for_each(|id| {
                let (replies, last_post) = self.threads[id as usize - 1];
                let mut title = format!("thread {id} ");
                let length = rng.usize(10..60);
                let _ = title.write_str(self.text.slice(&mut rng, length));
                let (forum, author) = (rng.i64(1..=FORUMS), rng.u64(1..=self.shape.members));
                let views = u64::from(replies) * 17;
                row(&[
                    int(id),
                    Arg::Int(forum),
                    int(author),
                    Arg::Text(&title),
                    int(EPOCH as u64 + id),
                    Arg::Int(last_post),
                    int(replies.into()),
                    int(views),
                ])
            }),
            _ => (1..=self.shape.posts).try_for_each(|id| {
                let (thread, author) = self.posts[id as usize - 1];
                let body = self.text.body(&mut rng);
                row(&[
                    int(id),
                    int(thread.into()),
                    int(author.into()),
                    Arg::Int(created(id)),
                    Arg::Text(body),
                ])
            }),
        }
    }
}

/// Numbers that one load generator may give to new rows; a run makes less than a tenth as many, and the columns hold
/// two hundred times as many.
pub const NUMBERS: u64 = 10_000_000;

/// When a post was written, in seconds that fit a column of 32 bits whichever load generator wrote it.
pub fn created(post: u64) -> i64 {
    EPOCH + (post % NUMBERS) as i64 * 60
}

/// Prose to cut signatures, titles and posts from.
#[derive(Clone, Debug)]
pub struct Text(String);

impl Text {
    /// 64 KiB of words from a seed.
    pub fn new(seed: u64) -> Text {
        const WORDS: &str = "the server thread kernel of a benchmark query and Linux with disk is memory for one \
            processor to cache in \
                             performance lock on client latency that we under it load as network results";
        let words: Vec<&str> = WORDS.split(' ').collect();
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut text = String::with_capacity(64 << 10);
        while text.len() < 64 << 10 {
            text.push_str(words[rng.usize(..words.len())]);
            text.push_str(if rng.u8(..12) == 0 { ". " } else { " " });
        }
        Text(text)
    }

    /// A piece of this length. It neither begins nor ends with a space, which some engines would cut off.
    fn slice(&self, rng: &mut fastrand::Rng, length: usize) -> &str {
        let bytes = self.0.as_bytes();
        let mut at = rng.usize(..bytes.len() - length - 40);
        while bytes[at] == b' ' || bytes[at + length - 1] == b' ' {
            at += 1;
        }
        &self.0[at..at + length]
    }

    /// The body of a post: mostly short, now and then long.
    pub fn body(&self, rng: &mut fastrand::Rng) -> &str {
        let length = 40 + (rng.f64().powi(3) * 860.0) as usize;
        self.slice(rng, length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    fn rows(data: &Data, table: &Table) -> Vec<String> {
        let mut rows = Vec::new();
        let Ok(()) = data.each_row(table, |row| {
            rows.push(format!("{row:?}"));
            Ok::<(), Infallible>(())
        });
        rows
    }

    #[test]
    fn a_seed_gives_the_same_rows_each_time_and_another_seed_others() {
        let (a, b, c) = (Data::new(1, 42), Data::new(1, 42), Data::new(1, 43));
        for table in &TABLES {
            assert_eq!(rows(&a, table), rows(&b, table));
            assert_ne!(rows(&a, table), rows(&c, table), "{}", table.name);
        }
    }

    #[test]
    fn the_tables_agree_with_each_other() {
        let data = Data::new(1, 1);
        let shape = Shape::at(1);
        assert_eq!(
            TABLES
                .iter()
                .map(|t| rows(&data, t).len() as u64)
                .sum::<u64>(),
            shape.members + shape.threads + shape.posts
        );
        let (mut replies, mut largest, mut written) = (0, 0, 0);
        let Ok(()) = data.each_row(&TABLES[1], |row| {
            let Arg::Int(n) = row[6] else {
                panic!("replies is a number")
            };
            replies += n;
            largest = largest.max(n);
            assert_eq!(row.len(), TABLES[1].width());
            Ok::<(), Infallible>(())
        });
        let Ok(()) = data.each_row(&TABLES[0], |row| {
            let Arg::Int(n) = row[3] else {
                panic!("posts is a number")
            };
            written += n;
            assert!(matches!(row[4], Arg::Text(s) if s.len() == SIGNATURE && s.trim() == s));
            Ok::<(), Infallible>(())
        });
        assert_eq!((replies as u64, written as u64), (shape.posts, shape.posts));
        assert!(
            largest as u64 > shape.posts / 20,
            "the most popular thread has {largest} posts of {}",
            shape.posts
        );
    }

    #[test]
    fn text_needs_no_quoting() {
        assert!(
            Text::new(5)
                .0
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || c == ' ' || c == '.')
        );
    }
}
