//! A reader: one contestant in a process of its own, told what to do line by line over its input.
//!
//! The timed loop holds only the reading of pages, one after the other, and one sum over all of their bytes, the same
//! for every contestant: nothing counts as read that nobody looked at. After it, outside the timing, the same pages are
//! read again and compared with what the site was made of, and their sum with that of the loop: a contestant that is
//! fast and wrong is found out.

use std::ffi::OsString;
use std::io::{self, BufRead};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fingerpost_sys::sum;
use fingerpost_undo::scratch::Scratch;

use super::access::{Access, Contestant};
use super::tree::{self, Page};
use crate::WorkloadError::{self, Failed};
use crate::worker::{self, Ended, Link, NoAnswer, refusal, say};

/// The worker's name.
pub const NAME: &str = "site-reader";
/// Pages between two looks at the clock while reading for a time.
const CLOCK_EVERY: u64 = 32;
/// Bytes of a page of memory.
const PAGE: usize = 4096;
/// How long a warm round's pages are read before it: many times as long as it takes, so that the caches are as full as
/// they get.
const WARM_UP: Duration = Duration::from_millis(2);
/// Between two looks whether an answer was waited for long enough.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// The process: `STORE SOURCE LIST [CPU]`.
pub fn main(args: Vec<OsString>) -> Ended {
    let mut server = State::new(&args)?;
    say("ready")?;
    for line in io::stdin().lock().lines() {
        say(&server.obey(&line?).unwrap_or_else(refusal))?;
    }
    Ok(())
}

/// The contestant, the pages, and the buffer that they are read into.
type Opened<'a> = (&'a mut Contestant, &'a [Page], &'a mut [u8]);

/// What a timed loop has looked at.
#[derive(Debug, Default, PartialEq)]
struct Seen {
    bytes: u64,
    total: u64,
}

impl Seen {
    #[inline]
    fn look(&mut self, content: &[u8]) {
        self.bytes += content.len() as u64;
        self.total = self.total.wrapping_add(sum::total(content));
    }
}

/// What the process has.
struct State {
    access: Access,
    source: PathBuf,
    pages: Vec<Page>,
    /// Open, unless it was told to close: a cold start then opens it again.
    contestant: Option<Box<Contestant>>,
    /// The memory that it may have, page cache included, where that is limited.
    memory: Option<u64>,
    buffer: Buffer,
}

/// Room that begins at a page of memory, as the files' content does in the kernel: neither copies nor sums then cross
/// more cache lines than they must.
struct Buffer {
    memory: Vec<u8>,
    start: usize,
}

impl Buffer {
    fn new(length: usize) -> Buffer {
        let memory = vec![1; length + PAGE];
        let start = memory.as_ptr().align_offset(PAGE).min(PAGE);
        Buffer { memory, start }
    }

    fn bytes(&mut self) -> &mut [u8] {
        let end = self.memory.len() - PAGE + self.start;
        &mut self.memory[self.start..end]
    }
}

impl State {
    fn new(args: &[OsString]) -> Result<State, String> {
        let [store, source, list, cpu @ ..] = args else {
            return Err("it takes STORE SOURCE LIST [CPU]".to_owned());
        };
        let access: Access = store.to_str().unwrap_or_default().parse()?;
        if let Some(cpu) = cpu.first().and_then(|c| c.to_str()?.parse::<usize>().ok()) {
            fingerpost_sys::affinity::pin(&[cpu])
                .map_err(|e| format!("cannot be pinned to CPU {cpu}: {e}"))?;
        }
        let pages = tree::read_list(Path::new(list)).map_err(|e| e.to_string())?;
        let largest = pages
            .iter()
            .map(|p| p.size)
            .max()
            .ok_or("the site has no pages")?;
        let contestant = Some(access.open(Path::new(source), None)?);
        // One more than the largest page: a read that fills the buffer was not whole.
        Ok(State {
            access,
            source: source.into(),
            pages,
            contestant,
            memory: None,
            buffer: Buffer::new(largest as usize + 1),
        })
    }

    fn obey(&mut self, line: &str) -> Result<String, String> {
        let words: Vec<&str> = line.split(' ').collect();
        let number = |i: usize| {
            words
                .get(i)
                .and_then(|w| w.parse::<u64>().ok())
                .ok_or_else(|| format!("“{line}” is no order"))
        };
        match words[0] {
            "warm" => self.check(0..self.pages.len()).map(|_| "ok".to_owned()),
            "load-program" => fingerpost_sys::memory::load_program()
                .map(|()| "ok".to_owned())
                .map_err(|e| format!("its program cannot be brought into memory: {e}")),
            "close" => {
                self.contestant = None;
                Ok("ok".to_owned())
            }
            "open" => {
                self.memory = words.get(1).and_then(|bytes| bytes.parse().ok());
                self.open().map(|_| "ok".to_owned())
            }
            "round" => self.round(number(1)?, number(2)? as usize, false),
            "warm-round" => self.round(number(1)?, number(2)? as usize, true),
            "span" => self.span(number(1)?, number(2)?),
            _ => Err(format!("“{line}” is no order")),
        }
    }

    fn open(&mut self) -> Result<Opened<'_>, String> {
        if self.contestant.is_none() {
            self.contestant = Some(self.access.open(&self.source, self.memory)?);
        }
        let contestant = self.contestant.as_mut().ok_or("not open")?;
        Ok((&mut **contestant, &self.pages, self.buffer.bytes()))
    }

    /// Reads so many random pages: the time, and the bytes. For a warm round the same pages are read before, again and
    /// again for a short time: then no contestant pays for what the others, which read in turn, drove out of the CPU's
    /// caches and predictors.
    fn round(&mut self, seed: u64, count: usize, warm: bool) -> Result<String, String> {
        let list = draw(seed, count, self.pages.len());
        let (contestant, pages, buffer) = self.open()?;
        let begun = Instant::now();
        while warm && begun.elapsed() < WARM_UP {
            std::hint::black_box(read_all(contestant, pages, buffer, &list)?);
        }
        let start = Instant::now();
        let seen = read_all(contestant, pages, buffer, &list)?;
        let ns = start.elapsed().as_nanos();
        if self.check(list)? != seen {
            return Err("the pages read within the time were not whole".to_owned());
        }
        Ok(format!("ok {ns} {}", seen.bytes))
    }

    /// Reads random pages for a time: how many, in which time.
    fn span(&mut self, seed: u64, ms: u64) -> Result<String, String> {
        let list = draw(seed, 4096, self.pages.len());
        let (contestant, pages, buffer) = self.open()?;
        let start = Instant::now();
        let (mut count, mut wanted, mut seen) = (0u64, 0, Seen::default());
        let length = Duration::from_millis(ms);
        while !count.is_multiple_of(CLOCK_EVERY) || start.elapsed() < length {
            let page = &pages[list[(count % 4096) as usize]];
            contestant(&page.path, buffer, &mut |content| seen.look(content))
                .map_err(|e| failure(page, &e))?;
            wanted += page.size;
            count += 1;
        }
        let ns = start.elapsed().as_nanos();
        // The sum is written down so that nobody can leave it out.
        if std::hint::black_box(&seen).bytes != wanted {
            return Err("the pages read within the time were not whole".to_owned());
        }
        Ok(format!("ok {ns} {count}"))
    }

    /// Reads pages and compares what comes with what was put there.
    fn check(&mut self, list: impl IntoIterator<Item = usize>) -> Result<Seen, String> {
        let (contestant, pages, buffer) = self.open()?;
        let mut seen = Seen::default();
        for i in list {
            let page = &pages[i];
            let mut good = false;
            let mut look = |content: &[u8]| {
                good = content.len() as u64 == page.size && sum::checksum(content) == page.sum;
                seen.look(content);
            };
            contestant(&page.path, buffer, &mut look).map_err(|e| failure(page, &e))?;
            if !good {
                return Err(failure(
                    page,
                    &io::Error::other("its content is not what was put there"),
                ));
            }
        }
        Ok(seen)
    }
}

/// Reads these pages one after the other.
fn read_all(
    contestant: &mut Contestant,
    pages: &[Page],
    buffer: &mut [u8],
    list: &[usize],
) -> Result<Seen, String> {
    let mut seen = Seen::default();
    for &i in list {
        contestant(&pages[i].path, buffer, &mut |content| seen.look(content))
            .map_err(|e| failure(&pages[i], &e))?;
    }
    Ok(seen)
}

fn failure(page: &Page, e: &io::Error) -> String {
    format!(
        "{} cannot be read: {e}",
        String::from_utf8_lossy(&page.path)
    )
}

/// The list of a round: the same for every contestant with the same seed.
fn draw(seed: u64, count: usize, pages: usize) -> Vec<usize> {
    let mut random = fastrand::Rng::with_seed(seed);
    (0..count).map(|_| random.usize(..pages)).collect()
}

/// A reader's process, from the conducting side.
pub struct Reader {
    /// Which contestant it is.
    pub access: Access,
    link: Link,
}

impl Reader {
    /// Starts a reader, which has opened its source when this returns.
    pub fn start(
        access: Access,
        source: &Path,
        list: &Path,
        cpu: Option<usize>,
        scratch: &mut Scratch,
    ) -> Result<Reader, WorkloadError> {
        let failed = |e: io::Error| Failed(format!("a reader could not be started: {e}"));
        let mut command = worker::command(NAME);
        command
            .arg(access.name())
            .arg(source)
            .arg(list)
            .args(cpu.map(|c| c.to_string()));
        let link = Link::within(&mut command, scratch).map_err(failed)?;
        let mut reader = Reader { access, link };
        match reader.read_answer() {
            Ok(word) if word == "ready" => Ok(reader),
            Ok(word) => Err(Failed(format!("a reader said “{word}”"))),
            // It never was open: this contestant is not available here.
            Err(Failed(why)) => {
                reader.stop(scratch);
                Err(WorkloadError::Missing(why))
            }
            Err(other) => Err(other),
        }
    }

    /// The number of its process.
    pub fn pid(&self) -> u32 {
        self.link.process.child.id()
    }

    /// Gives an order without waiting for the answer.
    pub fn order(&mut self, line: &str) -> Result<(), WorkloadError> {
        self.link.say(line).map_err(|_| self.lost(NoAnswer::Ended))
    }

    fn lost(&mut self, why: NoAnswer) -> WorkloadError {
        Failed(match why {
            NoAnswer::Io(e) => e.to_string(),
            NoAnswer::Refused(why) => format!("{}: {why}", self.access.name()),
            _ => format!(
                "the process that read from {} {}",
                self.access.name(),
                self.link.end()
            ),
        })
    }

    /// Waits for an answer.
    pub fn read_answer(&mut self) -> Result<String, WorkloadError> {
        self.link.line(None).map_err(|why| self.lost(why))
    }

    /// Waits for an answer until `enough` says that it was long enough, with a sentence that says why. The process is
    /// to be stopped then.
    pub fn read_answer_until(
        &mut self,
        enough: &mut dyn FnMut() -> Option<String>,
    ) -> Result<String, WorkloadError> {
        loop {
            if let Some(why) = enough() {
                return Err(Failed(why));
            }
            match self.link.line(LOOK_EVERY) {
                Err(NoAnswer::Late(_)) => {}
                answer => return answer.map_err(|why| self.lost(why)),
            }
        }
    }

    /// Gives an order, and the numbers of the answer.
    pub fn ask(&mut self, line: &str) -> Result<Vec<f64>, WorkloadError> {
        self.order(line)?;
        Ok(numbers(&self.read_answer()?))
    }

    /// Ends the process.
    pub fn stop(self, scratch: &mut Scratch) {
        // What cannot be ended here is ended with the scratch directory.
        let _ = scratch.stop(self.link.process);
    }
}

/// The numbers of an answer, `ok 123 456`.
pub fn numbers(answer: &str) -> Vec<f64> {
    answer
        .split(' ')
        .skip(1)
        .filter_map(|w| w.parse().ok())
        .collect()
}
