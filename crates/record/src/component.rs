//! The vocabulary of time: what a part of a budget is, and what a thread did or waited for at the end of a chain.
//!
//! Everything here is typed. A record writes a component by its name, which is made and read in this file alone: behind
//! it nothing is decided by comparing text, and no name of a process, a function or a file can be taken for one.

use std::borrow::Cow;
use std::fmt;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::layer::Layer;

/// What time went to, as a budget has it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Component {
    /// The server's or program's own code.
    UserCode,
    /// Code of another process that the request waited for.
    OtherCode,
    /// Another process that the request waited for slept.
    OtherSleeping,
    /// Another process that the request waited for waited for a lock.
    OtherLock,
    /// A system call by its name, on a CPU.
    SystemCall(String),
    /// System calls that are small each, together.
    OtherCalls,
    /// What ticks count as the kernel's and the trace sees outside of calls: entering and leaving them.
    OutsideOfCalls,
    /// Interrupts that came while the thread was on a CPU.
    Interrupts,
    /// The same with page faults, in records of before requests were followed.
    FaultsAndInterrupts,
    /// Ready to run, without a CPU.
    Cpu,
    /// Of it, what another process had the CPU.
    CpuOthers,
    /// Of it, what the server itself had it.
    CpuServer,
    /// Of it, what the load generator had it.
    CpuClient,
    /// Of it, what a CPU idled.
    CpuFree,
    /// The load generator, ready to run without a CPU.
    ClientCpu,
    /// Of it, what another process had the CPU.
    ClientCpuOthers,
    /// Of it, what the server had it.
    ClientCpuServer,
    /// Of it, what the load generator had it itself.
    ClientCpuClient,
    /// Of it, what a CPU idled.
    ClientCpuFree,
    /// The load generator on a CPU.
    ClientWork,
    /// The load generator waiting for a lock, a timer, a child, a pipe or memory of its own.
    ClientWait,
    /// A lock or condition.
    Lock,
    /// A disk, whatever of it.
    Disk,
    /// A block request held back before it reached the queue.
    DiskHeld,
    /// A block request in the queue.
    DiskQueue,
    /// A block request in the device.
    DiskDevice,
    /// A file system, or a device whose request was not seen.
    DiskFileSystem,
    /// Another service that could not be followed.
    Peer,
    /// Sent by one end of a connection, and not arrived at the other.
    OnTheWay,
    /// Asleep until a time.
    Sleeping,
    /// Memory: a page, or freeing some.
    Memory,
    /// A child process.
    Child,
    /// A pipe or an event.
    Pipe,
    /// What could not be followed.
    NotFollowed,
    /// Leaves too small for a record to keep each of them.
    TooSmall,
    /// A request that lies unread at the server, in records of before requests were followed.
    ServerQueue,
    /// Anything else that a record of an earlier version or of another tool has: its name.
    Other(String),
}

/// Every component with one name, and the name.
const NAMES: &[(Component, &str)] = &[
    (Component::UserCode, "server user code"),
    (Component::OtherCode, "code of another process"),
    (Component::OtherSleeping, "sleeping of another process"),
    (Component::OtherLock, "lock wait of another process"),
    (Component::OtherCalls, "kernel: other calls"),
    (Component::OutsideOfCalls, "kernel: outside of calls"),
    (Component::Interrupts, "interrupts"),
    (
        Component::FaultsAndInterrupts,
        "kernel: faults and interrupts",
    ),
    (Component::Cpu, "waiting for a CPU"),
    (
        Component::CpuOthers,
        "waiting for a CPU that another process had",
    ),
    (
        Component::CpuServer,
        "waiting for a CPU that the server itself had",
    ),
    (
        Component::CpuClient,
        "waiting for a CPU that the client had",
    ),
    (Component::CpuFree, "waiting for a CPU while one was free"),
    (Component::ClientCpu, "client waiting for a CPU"),
    (
        Component::ClientCpuOthers,
        "client waiting for a CPU that another process had",
    ),
    (
        Component::ClientCpuServer,
        "client waiting for a CPU that the server had",
    ),
    (
        Component::ClientCpuClient,
        "client waiting for a CPU that it had itself",
    ),
    (
        Component::ClientCpuFree,
        "client waiting for a CPU while one was free",
    ),
    (Component::ClientWork, "client user and kernel"),
    (Component::ClientWait, "client waiting for itself"),
    (Component::Lock, "waiting for a lock"),
    (Component::Disk, "waiting for the disk"),
    (Component::DiskHeld, "disk: held back before the queue"),
    (Component::DiskQueue, "disk: in the queue"),
    (Component::DiskDevice, "disk: in the device"),
    (Component::DiskFileSystem, "disk: file system"),
    (Component::Peer, "waiting for a peer"),
    (Component::OnTheWay, "on the way between server and client"),
    (Component::Sleeping, "sleeping"),
    (Component::Memory, "waiting for memory"),
    (Component::Child, "waiting for a child process"),
    (Component::Pipe, "waiting for a pipe"),
    (Component::NotFollowed, "not followed"),
    (Component::TooSmall, "parts too small to keep"),
    (Component::ServerQueue, "request waits for the server"),
];

/// How the name of a system call begins.
const CALL: &str = "kernel: ";

impl Component {
    /// Its name in a record.
    pub fn name(&self) -> Cow<'_, str> {
        match self {
            Component::SystemCall(call) => Cow::Owned(format!("{CALL}{call}")),
            Component::Other(name) => Cow::Borrowed(name),
            one => Cow::Borrowed(
                NAMES
                    .iter()
                    .find(|(of, _)| of == one)
                    .map_or("", |(_, name)| *name),
            ),
        }
    }

    /// The component of this name.
    pub fn of_name(name: &str) -> Component {
        if let Some((component, _)) = NAMES.iter().find(|(_, of)| *of == name) {
            return component.clone();
        }
        match name.strip_prefix(CALL) {
            Some(call) if !call.is_empty() => Component::SystemCall(call.to_owned()),
            _ => Component::Other(name.to_owned()),
        }
    }

    /// The system call that it is, if it is one.
    pub fn call(&self) -> Option<&str> {
        match self {
            Component::SystemCall(call) => Some(call),
            _ => None,
        }
    }

    /// What it is called among the kernel's parts: a system call by its name, or what stands for several.
    pub fn in_kernel(&self) -> Option<&str> {
        match self {
            Component::SystemCall(call) => Some(call),
            Component::OtherCalls => Some("other calls"),
            Component::OutsideOfCalls => Some("outside of calls"),
            Component::FaultsAndInterrupts => Some("faults and interrupts"),
            _ => None,
        }
    }

    /// Whether it is a system call, or several together.
    pub fn is_call(&self) -> bool {
        matches!(self, Component::SystemCall(_) | Component::OtherCalls)
    }

    /// What of it a hostile record chose.
    pub(crate) fn text_mut(&mut self) -> Option<&mut String> {
        match self {
            Component::SystemCall(text) | Component::Other(text) => Some(text),
            _ => None,
        }
    }
}

impl fmt::Display for Component {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())
    }
}

impl From<&str> for Component {
    fn from(name: &str) -> Component {
        Component::of_name(name)
    }
}

impl Serialize for Component {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&self.name())
    }
}

impl<'de> Deserialize<'de> for Component {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Component, D::Error> {
        let name = Cow::<'de, str>::deserialize(from)?;
        Ok(Component::of_name(&name))
    }
}

#[cfg(feature = "schema")]
impl JsonSchema for Component {
    fn schema_name() -> Cow<'static, str> {
        "Component".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let known: Vec<&str> = NAMES.iter().map(|(_, name)| *name).collect();
        schemars::json_schema!({
            "type": "string",
            "description": format!(
                "What time went to: `kernel: ` with the name of a system call, what an earlier version called it, or \
                 one of: {}.",
                known.join("; ")
            ),
        })
    }
}

/// Which side of a workload a thread is on.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// The service that is explained.
    #[default]
    Server,
    /// Its load generator.
    Client,
    /// Anybody else: another service, a neighbour, a thread of the kernel.
    Other,
}

/// What a thread at the end of a chain did, or what it waited for.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum WaitClass {
    /// User code, on a CPU.
    UserCode,
    /// A system call, on a CPU: its name.
    SystemCall(String),
    /// An interrupt that came while it was on a CPU.
    Interrupt,
    /// Ready to run, without a CPU.
    Cpu,
    /// A lock or condition whose holder could not be followed.
    Lock,
    /// A block request that was held back before it reached the queue.
    DiskHeld,
    /// A block request in the queue.
    DiskQueue,
    /// A block request in the device.
    DiskDevice,
    /// The file system, or a device whose request was not seen.
    DiskFileSystem,
    /// Another service, which could not be followed further.
    Peer,
    /// Sent by one end of a connection and not arrived at the other.
    OnTheWay,
    /// Asleep until a time.
    Timer,
    /// Freeing or moving memory, or waiting for a page.
    Memory,
    /// A child process.
    Child,
    /// The other end of a pipe, an event.
    Pipe,
    /// What could not be followed.
    NotFollowed,
    /// Leaves too small to keep each of them.
    TooSmall,
    /// What a record of an earlier version has, and this one does not know: its layer and its name.
    Unknown(Layer, String),
}

impl WaitClass {
    /// What of it a hostile record chose.
    pub(crate) fn text_mut(&mut self) -> Option<&mut String> {
        match self {
            WaitClass::SystemCall(text) | WaitClass::Unknown(_, text) => Some(text),
            _ => None,
        }
    }

    /// Layer and component of a thread of this side.
    pub fn component(&self, side: Side) -> (Layer, Component) {
        use Component as C;
        use Layer as L;
        use WaitClass as W;
        match (side, self) {
            (_, W::Unknown(layer, name)) => (*layer, C::of_name(name)),
            (_, W::NotFollowed) => (L::Application, C::NotFollowed),
            (_, W::TooSmall) => (L::Application, C::TooSmall),
            (Side::Client, W::Cpu) => (L::Client, C::ClientCpu),
            (Side::Client, W::UserCode | W::SystemCall(_) | W::Interrupt) => {
                (L::Client, C::ClientWork)
            }
            (Side::Client, W::Lock | W::Timer | W::Child | W::Pipe | W::Memory) => {
                (L::Client, C::ClientWait)
            }
            (Side::Server, W::UserCode) => (L::Application, C::UserCode),
            (Side::Other, W::UserCode) => (L::Application, C::OtherCode),
            (Side::Other, W::Timer) => (L::Application, C::OtherSleeping),
            (Side::Other, W::Lock) => (L::Application, C::OtherLock),
            (_, W::SystemCall(call)) => (L::Kernel, C::SystemCall(call.clone())),
            (_, W::Interrupt) => (L::Kernel, C::Interrupts),
            (_, W::Cpu) => (L::Scheduler, C::Cpu),
            (_, W::Lock) => (L::Application, C::Lock),
            (_, W::DiskHeld) => (L::Storage, C::DiskHeld),
            (_, W::DiskQueue) => (L::Storage, C::DiskQueue),
            (_, W::DiskDevice) => (L::Storage, C::DiskDevice),
            (_, W::DiskFileSystem) => (L::Storage, C::DiskFileSystem),
            (_, W::Peer) => (L::Network, C::Peer),
            (_, W::OnTheWay) => (L::Network, C::OnTheWay),
            (_, W::Timer) => (L::Application, C::Sleeping),
            (_, W::Memory) => (L::Memory, C::Memory),
            (_, W::Child) => (L::Application, C::Child),
            (_, W::Pipe) => (L::Application, C::Pipe),
        }
    }

    /// The class and side of a leaf of a record of schema 1, which has a layer and a component by name.
    pub(crate) fn of_older(layer: Layer, component: &str) -> (WaitClass, Side) {
        use Component as C;
        use WaitClass as W;
        let server = |class| (class, Side::Server);
        let other = |class| (class, Side::Other);
        match C::of_name(component) {
            C::ClientWork => (W::UserCode, Side::Client),
            C::ClientCpu => (W::Cpu, Side::Client),
            C::ClientWait => (W::Lock, Side::Client),
            C::NotFollowed => server(W::NotFollowed),
            C::TooSmall => server(W::TooSmall),
            // A class that is alike for both sides keeps its layer: the client's is told apart by it alone.
            _ if layer == Layer::Client => (W::Unknown(layer, component.to_owned()), Side::Client),
            C::UserCode => server(W::UserCode),
            C::OtherCode => other(W::UserCode),
            C::OtherSleeping => other(W::Timer),
            C::OtherLock => other(W::Lock),
            C::SystemCall(call) => server(W::SystemCall(call)),
            C::Interrupts => server(W::Interrupt),
            C::Cpu => server(W::Cpu),
            C::Lock => server(W::Lock),
            C::DiskHeld => server(W::DiskHeld),
            C::DiskQueue => server(W::DiskQueue),
            C::DiskDevice => server(W::DiskDevice),
            C::DiskFileSystem => server(W::DiskFileSystem),
            C::Peer => server(W::Peer),
            C::OnTheWay => server(W::OnTheWay),
            C::Sleeping => server(W::Timer),
            C::Memory => server(W::Memory),
            C::Child => server(W::Child),
            C::Pipe => server(W::Pipe),
            _ => server(W::Unknown(layer, component.to_owned())),
        }
    }
}

/// Who had meanwhile what was waited for, or whose work it was.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Blocker {
    /// The server itself.
    Server,
    /// The load generator.
    Client,
    /// Nobody: a CPU idled.
    Idle,
    /// A thread of another process, or of the kernel.
    Thread(Task),
    /// Another service by its address.
    Peer(String),
}

/// A thread as a blocker has it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Task {
    /// Its name (`comm`), which its process chooses.
    pub comm: String,
    /// Its process, where that is known and all threads that this stands for are of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<i32>,
    /// Its control group, where that is known and they are all in one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// The file that an interpreter runs in it, without its directory: `batch.py` of `python /srv/batch.py`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
}

impl Task {
    /// What it is called: its name, and what an interpreter runs.
    pub fn name(&self) -> Cow<'_, str> {
        match &self.program {
            Some(program) => format!("{} {program}", self.comm).into(),
            None => self.comm.as_str().into(),
        }
    }
}

impl Blocker {
    /// A thread of this name of which nothing else is known.
    pub fn thread(comm: impl Into<String>) -> Blocker {
        Blocker::Thread(Task {
            comm: comm.into(),
            ..Task::default()
        })
    }

    /// The thread that it is.
    pub fn task(&self) -> Option<&Task> {
        match self {
            Blocker::Thread(task) => Some(task),
            _ => None,
        }
    }

    /// What its name is, where it has one that it was given by somebody else.
    pub fn given_name(&self) -> Option<&str> {
        match self {
            Blocker::Thread(task) => Some(&task.comm),
            Blocker::Peer(address) => Some(address),
            Blocker::Server | Blocker::Client | Blocker::Idle => None,
        }
    }

    /// The same without the number of its process: threads of one name in one control group are one.
    pub fn by_name(&self) -> Blocker {
        match self {
            Blocker::Thread(task) => Blocker::Thread(Task {
                pid: None,
                ..task.clone()
            }),
            other => other.clone(),
        }
    }

    /// Strings of it that a hostile record chose.
    pub(crate) fn texts(&mut self) -> Vec<&mut String> {
        match self {
            Blocker::Thread(task) => std::iter::once(&mut task.comm)
                .chain(&mut task.group)
                .chain(&mut task.program)
                .collect(),
            Blocker::Peer(address) => vec![address],
            Blocker::Server | Blocker::Client | Blocker::Idle => Vec::new(),
        }
    }

    /// The blocker of a leaf of a record of schema 1, which has one string for all of them.
    pub(crate) fn of_older(whom: &str) -> Option<Blocker> {
        match whom {
            "" => None,
            "the server itself" => Some(Blocker::Server),
            "the client" => Some(Blocker::Client),
            "idle CPU" => Some(Blocker::Idle),
            name => Some(Blocker::thread(name)),
        }
    }
}

/// A step of the chain by which a path came to a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Link {
    /// Behind other requests of the same thread.
    Queue,
    /// An idle thread was given the request by this one.
    #[serde(rename = "hand-over")]
    Handover,
    /// A lock or condition that another thread ended.
    Lock,
    /// A file system's or device's thread.
    Disk,
    /// Another end of a pipe or event.
    Pipe,
    /// The other end of a connection.
    Peer,
    /// A child process.
    Child,
    /// Another thread of the program, while its first one waits for the whole of a window.
    Thread,
    /// A page, or the address space's lock.
    Memory,
    /// A link that an earlier version knew, and this one does not.
    Unknown,
}

impl Link {
    /// Its name in a record.
    pub fn as_str(self) -> &'static str {
        match self {
            Link::Queue => "queue",
            Link::Handover => "hand-over",
            Link::Lock => "lock",
            Link::Disk => "disk",
            Link::Pipe => "pipe",
            Link::Peer => "peer",
            Link::Child => "child",
            Link::Thread => "thread",
            Link::Memory => "memory",
            Link::Unknown => "unknown",
        }
    }

    /// The link of a record of schema 1, in which the name of a peer may follow.
    pub(crate) fn of_older(text: &str) -> Link {
        let word = text.split(' ').next().unwrap_or_default();
        [
            Link::Queue,
            Link::Handover,
            Link::Lock,
            Link::Disk,
            Link::Pipe,
            Link::Peer,
            Link::Child,
            Link::Thread,
            Link::Memory,
        ]
        .into_iter()
        .find(|link| link.as_str() == word)
        .unwrap_or(Link::Unknown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_component_has_one_name_and_is_read_by_it() {
        for (component, name) in NAMES {
            assert_eq!(component.name(), *name);
            assert_eq!(Component::of_name(name), *component);
            let json = serde_json::to_string(component).unwrap();
            assert_eq!(json, format!("{name:?}"));
            assert_eq!(
                serde_json::from_str::<Component>(&json).unwrap(),
                *component
            );
        }
        for name in ["kernel: futex", "kernel: ", "", "hand-made", "Sleeping"] {
            assert_eq!(Component::of_name(name).name(), name);
        }
        assert_eq!(Component::of_name("kernel: futex").call(), Some("futex"));
    }

    #[test]
    fn a_class_of_schema_1_comes_to_the_component_that_it_had() {
        let layers = [
            Layer::Application,
            Layer::Kernel,
            Layer::Scheduler,
            Layer::Memory,
            Layer::Storage,
            Layer::Network,
        ];
        for (component, name) in NAMES {
            for layer in layers {
                let (class, side) = WaitClass::of_older(layer, name);
                assert_eq!(class.component(side).1, *component, "{name} in {layer}");
            }
        }
        let (class, side) = WaitClass::of_older(Layer::Client, "sleeping");
        assert_eq!(
            (class.component(side), side),
            ((Layer::Client, Component::Sleeping), Side::Client)
        );
    }

    #[test]
    fn no_process_name_is_read_as_server_client_or_idle_cpu() {
        for (component, name) in NAMES {
            let blocker = Blocker::thread(*name);
            let json = serde_json::to_string(&blocker).unwrap();
            assert_eq!(serde_json::from_str::<Blocker>(&json).unwrap(), blocker);
            assert_ne!(format!("{blocker:?}"), format!("{component:?}"));
        }
        for name in ["idle CPU", "the client", "the server itself", "server", ""] {
            let json = serde_json::to_string(&Blocker::thread(name)).unwrap();
            let read: Blocker = serde_json::from_str(&json).unwrap();
            assert_eq!(read.given_name(), Some(name));
        }
    }
}
