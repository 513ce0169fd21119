//! Samples of the kernel counted by what their call chains show.

/// Samples of one loop by what the CPU was doing.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Tally {
    /// All samples of the loop.
    pub(super) all: u64,
    /// In the function that clears pages.
    pub(super) clear: u64,
    /// In taking the page-table lock, where the cleared page's stores are waited for.
    pub(super) stores: u64,
    /// Below the page-fault exception, clearing included.
    pub(super) fault: u64,
    /// Below munmap.
    pub(super) unmap: u64,
    /// Below mmap.
    pub(super) map: u64,
    /// In user code: the loop, and what entering and leaving the exception costs.
    pub(super) user: u64,
}

/// Whether a kernel function sets pages to zero. The architectures and versions call it differently.
pub(super) fn clears(function: &str) -> bool {
    [
        "clear_page",
        "clear_pages",
        "__clear_page",
        "__pi_clear_page",
        "clear_user_highpage",
        "clear_huge_page",
        "memset",
    ]
    .iter()
    .any(|name| {
        function
            .strip_prefix(name)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
    })
}

/// Whether an innermost chain is the taking of the page-table lock by a fault that has just cleared a page.
fn waits_for_stores(chain: &[&str]) -> bool {
    let lock = chain
        .iter()
        .take(2)
        .any(|f| f.starts_with("_raw_spin_lock") || f.starts_with("native_queued_spin_lock"));
    lock && chain
        .iter()
        .take(4)
        .any(|f| f.contains("pte_offset_map_lock") || f.starts_with("do_anonymous_page"))
}

/// Whether a kernel function is where a page fault enters, or handles it.
pub(super) fn faults(function: &str) -> bool {
    [
        "asm_exc_page_fault",
        "exc_page_fault",
        "do_user_addr_fault",
        "handle_mm_fault",
        "do_page_fault",
        "do_translation_fault",
        "do_mem_abort",
        "el0_da",
    ]
    .contains(&function)
}

impl Tally {
    /// Counts one sample: `chain` is the kernel's call chain by function, innermost first; empty for a sample in user
    /// code.
    pub(super) fn add(&mut self, chain: &[&str]) {
        let below = |part: &str| chain.iter().any(|f| f.contains(part));
        self.all += 1;
        match chain {
            [] => self.user += 1,
            _ if chain.iter().any(|f| faults(f)) => {
                self.fault += 1;
                // The timer's own functions may lie above the interrupted one; a huge page is cleared by a loop of its
                // own.
                self.clear += u64::from(
                    chain.iter().take(3).any(|f| clears(f))
                        || chain.iter().any(|f| f.starts_with("folio_zero_user")),
                );
                self.stores += u64::from(waits_for_stores(chain));
            }
            _ if below("munmap") => self.unmap += 1,
            _ if below("mmap") => self.map += 1,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_counted_where_its_call_chain_puts_it() {
        let mut t = Tally::default();
        t.add(&[
            "clear_page_erms",
            "get_page_from_freelist",
            "handle_mm_fault",
            "exc_page_fault",
            "asm_exc_page_fault",
        ]);
        t.add(&[
            "_raw_spin_lock",
            "__pte_offset_map_lock",
            "do_anonymous_page",
            "handle_mm_fault",
            "asm_exc_page_fault",
        ]);
        t.add(&[
            "_raw_spin_lock",
            "get_page_from_freelist",
            "alloc_pages",
            "vma_alloc_folio",
            "do_anonymous_page",
            "handle_mm_fault",
        ]);
        t.add(&["__lruvec_stat_mod", "handle_mm_fault", "asm_exc_page_fault"]);
        t.add(&[
            "free_unref_folios",
            "unmap_region",
            "__vm_munmap",
            "__x64_sys_munmap",
            "do_syscall_64",
        ]);
        t.add(&["mas_find", "do_mmap", "ksys_mmap_pgoff", "do_syscall_64"]);
        t.add(&["entry_SYSCALL_64"]);
        t.add(&[]);
        assert_eq!(
            t,
            Tally {
                all: 8,
                clear: 1,
                stores: 1,
                fault: 4,
                unmap: 1,
                map: 1,
                user: 1
            }
        );
    }

    #[test]
    fn functions_that_clear_pages_are_known_by_their_names() {
        for name in [
            "clear_page_erms",
            "clear_page_rep",
            "clear_page_orig",
            "clear_page",
            "__pi_clear_page",
            "clear_huge_page",
        ] {
            assert!(clears(name), "{name}");
        }
        for name in [
            "clear_pageblock",
            "get_page_from_freelist",
            "memset32x",
            "clear_bit",
        ] {
            assert!(!clears(name), "{name}");
        }
    }
}
