//! The exchange with a judge: a prompt, a reply, and at most one re-ask.

use super::{InvalidReply, JudgeMaterial, JudgeQuestion};
use bakeoff_core::Message;

/// Characters of an invalid reply that an error shows.
const MAX_SHOWN_CHARACTERS: usize = 80;

/// The text that a judge returned for one prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JudgeCompletion {
    /// The reply.
    pub text: String,
    /// Whether the reply ends at the token limit. Its last line is then not its end, so it is not parsed.
    pub is_truncated: bool,
}

/// The state of one exchange. The caller sends the prompts and passes every completion to
/// [`receive`](Exchange::receive); [`ask`] does both.
#[derive(Debug, Clone, Default)]
pub struct Exchange {
    was_reasked: bool,
}

/// What follows from a completion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExchangeStep<V> {
    /// The reply has a verdict.
    Verdict(V),
    /// The first reply is invalid: send this message in the same conversation.
    Reask(String),
    /// The second reply is invalid too; there is no verdict.
    Invalid(InvalidReply),
}

impl Exchange {
    /// Parses a completion and decides whether to re-ask.
    pub fn receive<Q: JudgeQuestion>(
        &mut self,
        question: &Q,
        completion: &JudgeCompletion,
    ) -> ExchangeStep<Q::Verdict> {
        let parsed = match completion.is_truncated {
            true => Err(InvalidReply::truncated()),
            false => question.parse(&completion.text),
        };
        match parsed {
            Ok(verdict) => ExchangeStep::Verdict(verdict),
            Err(invalid) if self.was_reasked => ExchangeStep::Invalid(invalid),
            Err(invalid) => {
                self.was_reasked = true;
                ExchangeStep::Reask(question.reask(&invalid))
            }
        }
    }
}

/// A model that judges.
pub trait Judge {
    /// Why a call failed.
    type Error;

    /// Returns the model's completion of a conversation.
    fn complete(
        &mut self,
        messages: &[Message],
    ) -> impl Future<Output = Result<JudgeCompletion, Self::Error>> + Send;
}

/// Why a judge gave no verdict.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JudgeError<E> {
    /// The call failed.
    #[error("judge call failed: {0}")]
    Call(E),
    /// Both replies are invalid.
    #[error("judge reply unparseable after re-asking: {} ({invalid})", shown(reply))]
    Unparseable {
        /// The second reply.
        reply: String,
        /// Why it is invalid.
        invalid: InvalidReply,
    },
}

fn shown(reply: &str) -> String {
    let start: String = reply.chars().take(MAX_SHOWN_CHARACTERS).collect();
    format!("{start:?}")
}

/// Asks a judge, and re-asks once after an invalid reply.
///
/// # Errors
///
/// A call fails, or the second reply is invalid too.
pub async fn ask<J: Judge, Q: JudgeQuestion>(
    judge: &mut J,
    question: &Q,
    material: &JudgeMaterial<'_>,
) -> Result<Q::Verdict, JudgeError<J::Error>> {
    let mut messages =
        vec![Message::system(question.instructions()), Message::user(material.prompt(question))];
    let mut exchange = Exchange::default();
    loop {
        let completion = judge.complete(&messages).await.map_err(JudgeError::Call)?;
        match exchange.receive(question, &completion) {
            ExchangeStep::Verdict(verdict) => return Ok(verdict),
            ExchangeStep::Reask(message) => {
                messages.push(Message::assistant(completion.text));
                messages.push(Message::user(message));
            }
            ExchangeStep::Invalid(invalid) => {
                return Err(JudgeError::Unparseable { reply: completion.text, invalid });
            }
        }
    }
}
