//! Simulated models that a suite defines.

use crate::number::{some_not_negative, some_share};
use crate::{Latency, TokenCount};
use serde::Deserialize;
use serde_json::{Map, Value};

/// A model defined under `[sim.<name>]`. All keys are optional. An absent key keeps the behaviour of
/// the model's name, so `[sim.judge]` with only a bias is still a judge.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SimModel {
    /// Answers by the last user message; the first match is used.
    pub answers: Vec<CannedAnswer>,
    /// Answer when none of `answers` matches.
    pub default: Option<String>,
    /// Tools that the model calls, one after the other, before it answers. A model without an answer
    /// of its own returns the result of the last call.
    pub calls: Vec<PlannedCall>,
    /// Probability of the right answer instead of the wrong one; 1 when absent.
    #[serde(deserialize_with = "some_share")]
    pub pass: Option<f64>,
    /// The wrong answer; `I do not know.` when absent.
    pub wrong: Option<String>,
    /// Latency of its answers.
    pub latency: Option<Latency>,
    /// Prompt tokens of each request, instead of counted ones.
    pub input_tokens: Option<TokenCount>,
    /// Tokens of each answer, instead of counted ones.
    pub output_tokens: Option<TokenCount>,
    /// Position bias: added to the perceived quality of the first candidate. A negative bias favours
    /// the others. A model with a bias and no answers of its own is a judge.
    pub bias: Option<f64>,
    /// Standard deviation of the error in each candidate's perceived quality; 0 when absent. A model
    /// with noise and no answers of its own is a judge.
    #[serde(deserialize_with = "some_not_negative")]
    pub noise: Option<f64>,
    /// Quality written at the end of its generated texts, instead of one derived from its name.
    #[serde(deserialize_with = "some_share")]
    pub quality: Option<f64>,
}

/// A prepared answer to a user message.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CannedAnswer {
    /// Matches when the last user message contains this text, ignoring case.
    pub when: String,
    /// The answer.
    pub answer: String,
    /// Probability of this answer instead of the wrong one; the model's `pass` when absent. It lets
    /// the quality of a model differ between questions.
    #[serde(default, deserialize_with = "some_share")]
    pub pass: Option<f64>,
}

/// A tool call that a model makes before it answers.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlannedCall {
    /// Name of the tool; it is called even when the request does not offer it.
    pub tool: String,
    /// Arguments of the call.
    #[serde(default)]
    pub arguments: Map<String, Value>,
}

impl SimModel {
    /// Returns the wrong answer.
    pub(crate) fn wrong(&self) -> &str {
        self.wrong.as_deref().unwrap_or("I do not know.")
    }

    /// Returns the right answer to a user message and its probability.
    pub(crate) fn right(&self, message: &str) -> Option<(&str, f64)> {
        let message = message.to_lowercase();
        let pass = self.pass.unwrap_or(1.0);
        self.answers
            .iter()
            .find(|canned| message.contains(&canned.when.to_lowercase()))
            .map(|canned| (canned.answer.as_str(), canned.pass.unwrap_or(pass)))
            .or(self.default.as_deref().map(|answer| (answer, pass)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_every_key_and_rejects_unknown_ones() {
        let model: SimModel = toml::from_str(
            r#"
            answers = [{ when = "capital of France", answer = "Paris", pass = 0.9 }]
            default = "no idea"
            calls = [{ tool = "read", arguments = { path = "a" } }, { tool = "stop" }]
            pass = 0.8
            wrong = "Rome"
            latency = { kind = "fixed", ms = 5 }
            input_tokens = 7
            output_tokens = { median = 9, sigma = 0.1 }
            bias = -0.5
            noise = 0.2
            quality = 0.25
            "#,
        )
        .unwrap();
        assert_eq!(model.right("What is the CAPITAL of france?"), Some(("Paris", 0.9)));
        assert_eq!(model.right("And of Spain?"), Some(("no idea", 0.8)));
        assert_eq!(model.wrong(), "Rome");
        assert_eq!(model.calls[0].arguments["path"], "a");
        assert_eq!(model.calls[1].tool, "stop");
        assert_eq!(model.latency, Some(Latency::Fixed { ms: 5.0 }));
        assert_eq!(model.input_tokens, Some(TokenCount::Fixed(7)));
        assert_eq!(model.output_tokens, Some(TokenCount::Lognormal { median: 9.0, sigma: 0.1 }));
        assert_eq!(
            (model.pass, model.bias, model.noise, model.quality),
            (Some(0.8), Some(-0.5), Some(0.2), Some(0.25))
        );
        assert_eq!(toml::from_str::<SimModel>("").unwrap(), SimModel::default());
        for bad in [
            "pass = 1.5",
            "noise = -0.1",
            "quality = -1",
            "qualty = 1",
            "answers = [{ when = 'a' }]",
            "calls = [{}]",
        ] {
            assert!(toml::from_str::<SimModel>(bad).is_err(), "{bad}");
        }
    }
}
