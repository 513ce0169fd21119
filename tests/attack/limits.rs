//! Limits of the system: processes, file sizes, memory, a full disk, names that are no UTF-8.
