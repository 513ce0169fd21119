//! The names of causes that code speaks of, each a constant: a name that is not here does not compile.

/// A constant for each name.
macro_rules! ids {
    ($($name:ident = $text:literal;)*) => {
        $(#[doc = concat!("The cause `", $text, "`.")] pub const $name: &str = $text;)*

        /// All of them.
        pub const ALL: &[&str] = &[$($name,)*];
    };
}

ids! {
    NETWORK_SHAPING = "network.shaping";
    PEER_SLOW = "peer.slow";
    STORAGE_LATENCY = "storage.latency";
    STORAGE_THROTTLE = "storage.throttle";
    STORAGE_CONTENTION = "storage.contention";
    STORAGE_DURABILITY = "storage.durability";
    APP_WORK = "app.work";
    APP_CALLS = "app.calls";
    APP_BUILD = "app.build";
    APP_SETTING = "app.setting";
    CPU_SATURATED = "cpu.saturated";
    CPU_CONTENTION = "cpu.contention";
    CPU_PRIORITY = "cpu.priority";
    CPU_QUOTA = "cpu.quota";
    CPU_AFFINITY = "cpu.affinity";
    APP_LOCK = "app.lock";
    APP_WAIT = "app.wait";
    APP_QUERY_CACHE = "app.query_cache";
    SYSCALL_ENTRY = "syscall.entry";
    KERNEL_TRACE = "kernel.trace";
    PROCESS_CREATION = "process.creation";
    CPU_MITIGATION = "cpu.mitigation";
    CPU_SPEED = "cpu.speed";
    NETWORK_DELAY = "network.delay";
    NETWORK_ACCEPT_QUEUE = "network.accept_queue";
    MEMORY_LIMIT = "memory.limit";
    MEMORY_PAGE_SIZE = "memory.page_size";
    CLIENT_SATURATED = "client.saturated";
    HOST_STEAL = "host.steal";
    MEMORY_SWAP_PLACE = "memory.swap_place";
    KERNEL_CLOCK = "kernel.clock";
    KERNEL_WORK = "kernel.work";
    KERNEL_SIGNAL = "kernel.signal";
    KERNEL_PROCESS = "kernel.process";
    KERNEL_THREAD = "kernel.thread";
    SCHEDULER_SWITCH = "scheduler.switch";
    KERNEL_IPC = "kernel.ipc";
    NETWORK_STACK = "network.stack";
    MEMORY_FAULT = "memory.fault";
    MEMORY_MAPPING = "memory.mapping";
    MEMORY_FIRST_TOUCH = "memory.first_touch";
    MEMORY_BANDWIDTH = "memory.bandwidth";
    KERNEL_FUTEX = "kernel.futex";
    KERNEL_LOCKING = "kernel.locking";
    KERNEL_SCALING = "kernel.scaling";
    MEMORY_PAGING = "memory.paging";
}
