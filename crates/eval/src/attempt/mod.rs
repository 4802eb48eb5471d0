//! How each kind of target makes its attempt.

mod model;
mod program;

pub(crate) use model::describe;
