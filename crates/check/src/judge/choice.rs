//! Questions that compare responses.

use super::question::{InvalidReply, JudgeQuestion};
use super::vote::{parse_preference, parse_vote};

const ROLE: &str = "You are an impartial judge. Several responses to the same query are compared, and you say which \
one answers it best: what is right and what helps the user counts. The order of the responses and their length say \
nothing about it.";

/// "Which response is best?" The verdict is the response's number, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BestResponse {
    /// Number of responses.
    pub responses: usize,
}

impl JudgeQuestion for BestResponse {
    type Verdict = usize;

    fn role(&self) -> &str {
        ROLE
    }

    fn text(&self) -> String {
        "Which response is best?".to_owned()
    }

    fn verdict_form(&self) -> String {
        let examples = match self.responses {
            0 | 1 => "\"1\"".to_owned(),
            last => format!("\"1\" or \"{last}\""),
        };
        format!("the response number (e.g., {examples})")
    }

    fn parse(&self, reply: &str) -> Result<usize, InvalidReply> {
        parse_vote(reply, self.responses).ok_or_else(|| {
            InvalidReply::new("does not end with the number of one response on a line of its own")
        })
    }
}

/// "Which response is best?" of two responses that may be equally good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BetterResponse;

/// The verdict on two responses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PairPreference {
    /// Response 1 is better.
    First,
    /// Response 2 is better.
    Second,
    /// Neither is better.
    Tie,
}

impl JudgeQuestion for BetterResponse {
    type Verdict = PairPreference;

    fn role(&self) -> &str {
        ROLE
    }

    fn text(&self) -> String {
        BestResponse { responses: 2 }.text()
    }

    fn verdict_form(&self) -> String {
        "the response number (\"1\" or \"2\"), or \"tie\" if neither is better".to_owned()
    }

    fn parse(&self, reply: &str) -> Result<PairPreference, InvalidReply> {
        parse_preference(reply).ok_or_else(|| {
            InvalidReply::new(
                "does not end with the number of one response, or \"tie\", on a line of its own",
            )
        })
    }
}
