//! The judge protocol: how a model is asked to score or compare responses, and how its reply is parsed.
//!
//! Rubric checks, pairwise checks and races ask different questions over this one protocol:
//!
//! - **Layout** ([`JudgeMaterial`]): every untrusted text stands inside a [`Fence`] whose tag occurs in none
//!   of the texts, so a response can neither close its own fence nor open another.
//! - **Reply format**: one or two sentences of evidence, then the verdict alone on the last line. A
//!   [`JudgeQuestion`] states the form of the verdict: a number or a JSON object. Evidence before the verdict
//!   makes judges more accurate (arXiv 2305.17926).
//! - **Strict parsing** ([`JudgeQuestion::parse`]): a reply that permits two readings is invalid.
//! - **Re-asking** ([`Exchange`]): an invalid reply is re-asked exactly once, in the same conversation, with
//!   a message that states what was wrong. A second invalid reply is no verdict, and never a failure of the
//!   response.
//!
//! The model is injected as a [`Judge`]; this crate calls no provider.

mod choice;
mod exchange;
mod fence;
mod material;
mod object;
mod question;
mod reasoned;
mod simulated;
mod vote;

pub use choice::{BestResponse, BetterResponse, PairPreference};
pub use exchange::{Exchange, ExchangeStep, Judge, JudgeCompletion, JudgeError, ask};
pub use fence::Fence;
pub use material::JudgeMaterial;
pub use question::{InvalidReply, JudgeQuestion};
pub use simulated::simulated_judge;

pub(crate) use object::parse_object;
