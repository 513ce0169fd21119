//! Causes planted in real private servers: MariaDB, PostgreSQL, SQLite, Redis, nginx, Apache.
//!
//! [`plants`] and [`apart`] are the two lists of what can be planted, [`strength`] draws trials from them, [`trial`]
//! runs one and has `compare` judge, [`mod@score`] counts, [`record`] keeps trials so that they can be judged again.
//! [`scene`] is one side as data and [`around`] what is around its server. Nothing here prints.

pub mod apart;
pub mod around;
pub mod kind;
pub mod plants;
pub mod record;
pub mod scene;
pub mod score;
pub mod set;
pub mod strength;
pub mod trial;

pub use kind::Kind;
pub use score::{Row, Score, Share, score};
pub use set::Set;
pub use strength::{Outline, candidates, draw};
pub use trial::{Course, Taken, judged, run};
