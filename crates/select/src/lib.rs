//! Which combination is best?
//!
//! An agent has roles, each role has candidates, and a *combination* has one candidate for each role.
//! A *cell* is a combination on a datapoint; paying for it gives an [`Observation`]. A [`Selector`]
//! says which cells to pay for next and when it has seen enough. Selectors are pure: the same seed
//! and the same observations give the same choice, however the cells are evaluated.

mod auto;
mod evidence;
mod objective;
mod selector;
mod space;
mod strict;

pub use auto::{Auto, AutoOptions, Tuning};
pub use evidence::{Evidence, Observation, RowFigures};
pub use objective::Objective;
pub use selector::{Choice, Elimination, Round, Selector, Step};
pub use space::{Cell, Role, Space, SpaceError};
pub use strict::{Strict, StrictOptions};
