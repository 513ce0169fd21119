//! What is left out of a look at a service's functions, said in one line.

use std::collections::BTreeSet;

use fingerpost_record::text::counted;

/// What was left out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Left {
    /// Files of a kind that is not opened.
    pub elsewhere: u32,
    /// Processes whose list of mappings was not read, or not to its end.
    pub processes: BTreeSet<i32>,
    /// Files that could not be read within the time and memory for that, by the end of their path.
    pub files: BTreeSet<String>,
    /// Samples that were not unwound, and addresses that were not named, when the time was over.
    pub samples: usize,
    /// See [`Left::samples`].
    pub addresses: usize,
    /// Why nothing was read at all.
    pub nothing: Option<&'static str>,
}

/// Names of files that are told.
const MOST_TOLD: usize = 3;

impl Left {
    /// Adds what another part of the look left out.
    pub fn and(&mut self, other: Left) {
        self.elsewhere = self.elsewhere.max(other.elsewhere);
        self.processes.extend(other.processes);
        self.files.extend(other.files);
        self.samples += other.samples;
        self.addresses += other.addresses;
        self.nothing = self.nothing.or(other.nothing);
    }

    /// The sentence; nothing where all was read.
    pub fn sentence(&self) -> Option<String> {
        let mut parts = Vec::new();
        parts.extend(self.nothing.map(str::to_owned));
        if self.elsewhere > 0 {
            parts.push(format!(
                "{} not on a file system of this machine",
                counted(self.elsewhere, "file")
            ));
        }
        if !self.files.is_empty() {
            let told: Vec<&str> = self
                .files
                .iter()
                .take(MOST_TOLD)
                .map(String::as_str)
                .collect();
            let more = self.files.len().saturating_sub(MOST_TOLD);
            let more = if more > 0 {
                format!(" and {more} more")
            } else {
                String::new()
            };
            parts.push(format!(
                "{} that take too much time or memory to read ({}{more})",
                counted(self.files.len() as u64, "file"),
                told.join(", ")
            ));
        }
        if !self.processes.is_empty() {
            parts.push(format!(
                "part of the mappings of {}",
                counted(self.processes.len() as u64, "process")
            ));
        }
        if self.samples > 0 {
            parts.push(format!(
                "the callers in {}, for want of time",
                counted(self.samples as u64, "sample")
            ));
        }
        if self.addresses > 0 {
            parts.push(format!(
                "the names at {}, for want of time",
                counted(self.addresses as u64, "address")
            ));
        }
        (!parts.is_empty()).then(|| format!("left out of its functions: {}", parts.join("; ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_is_one_sentence_and_nothing_is_none() {
        assert_eq!(Left::default().sentence(), None);
        let mut left = Left {
            elsewhere: 1,
            files: ["a", "b", "c", "d"].map(str::to_owned).into(),
            ..Left::default()
        };
        left.and(Left {
            elsewhere: 1,
            processes: [7].into(),
            samples: 2,
            ..Left::default()
        });
        assert_eq!(
            left.sentence().unwrap(),
            "left out of its functions: 1 file not on a file system of this machine; 4 files that take too much time \
             or memory to read (a, b, c and 1 more); part of the mappings of 1 process; the callers in 2 samples, for \
             want of time"
        );
    }
}
