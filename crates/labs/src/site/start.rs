//! How the readers of a contest begin: with what the kernel has forgotten, and with how much memory.

use std::collections::BTreeMap;
use std::fs;

use super::analysis::{MEMORY, MET};
use fingerpost_record::Param;
use fingerpost_record::params::named;
use fingerpost_sys::cgroup::Throttle;
use fingerpost_undo::scratch::Scratch;

use crate::LabError;
use crate::launch::pressure::MemoryGroup;

/// How the readers of a warming contest begin.
#[derive(Default)]
pub struct Start {
    /// Whether the kernel forgets files and directories before each.
    pub cold: bool,
    /// A control group of the readers, which tells how much memory they have, page cache included, and may limit it.
    pub memory_group: Option<MemoryGroup>,
    pub limit: Option<u64>,
}

impl Start {
    /// A start with so much memory, or with all there is.
    ///
    /// # Errors
    /// A sentence that says why memory cannot be limited here.
    pub fn with(scratch: &mut Scratch, cold: bool, memory: Option<u64>) -> Result<Start, String> {
        if !cold {
            return match memory {
                None => Ok(Start::default()),
                Some(_) => {
                    Err("limiting memory needs root and --allow-system-changes, and a file system with a cache to drop"
                        .into())
                }
            };
        }
        let memory_group = MemoryGroup::make("site", scratch, &[], Throttle::default());
        let Some(bytes) = memory else {
            return Ok(Start {
                cold,
                memory_group: memory_group.ok(),
                limit: None,
            });
        };
        let memory_group = memory_group?;
        match memory_group.limit(memory) {
            Ok(()) => Ok(Start {
                cold,
                memory_group: Some(memory_group),
                limit: Some(bytes),
            }),
            Err(sentence) => Err(memory_group.take_down(scratch).err().unwrap_or(sentence)),
        }
    }

    /// What is said of a limit that was never met: it changed nothing.
    pub fn unmet(&self) -> Option<String> {
        let (limit, _) = self
            .limit
            .zip(self.memory_group.as_ref()?.met())
            .filter(|(_, met)| *met == 0)?;
        let set = named("memory", &Param::Int(limit as i64));
        Some(format!(
            "with {set} no reader reached the limit, which changed nothing; give less, or a larger site (pages=, urls=)"
        ))
    }

    /// What the readers' group counted: how much memory it has, and how often its limit was met.
    pub(super) fn counted(&self) -> BTreeMap<String, f64> {
        let Some(memory_group) = &self.memory_group else {
            return BTreeMap::new();
        };
        let met = memory_group.met().filter(|_| self.limit.is_some());
        let counted = [(MEMORY, memory_group.memory_bytes()), (MET, met)];
        counted
            .into_iter()
            .filter_map(|(name, n)| Some((name.to_owned(), n? as f64)))
            .collect()
    }

    /// Takes the control group away.
    pub fn end(self, scratch: &mut Scratch) -> Result<(), LabError> {
        self.memory_group.map_or(Ok(()), |memory_group| {
            memory_group.take_down(scratch).map_err(LabError::Failed)
        })
    }
}

/// Writes out what is changed and has the kernel forget what it has of files and directories. It changes no setting:
/// there is nothing to undo.
pub fn drop_caches() -> std::io::Result<()> {
    rustix::fs::sync();
    fs::write("/proc/sys/vm/drop_caches", "3")
}
