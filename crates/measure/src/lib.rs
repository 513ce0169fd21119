//! The measuring core: how many operations make a batch, which probe runs next, what a figure and its interval are.
//!
//! Nothing here reads a clock, starts a process or prints: time comes in as numbers, work goes out through
//! [`rounds::Executor`], or is the caller's between two turns ([`course`]). So all of it is tested on recorded and
//! synthetic samples. `docs/measuring.md` gives the reasons and the figures behind them.

pub mod batch;
pub mod course;
pub mod doubt;
pub mod estimate;
pub mod pace;
pub mod pairs;
pub mod rounds;
pub mod slice;
pub mod special;

pub use estimate::Center;
pub use slice::Slice;
