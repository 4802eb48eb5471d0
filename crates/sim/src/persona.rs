//! Models that a suite makes up for itself.

use crate::number::{some_not_negative, some_share};
use crate::{Latency, TokenCount};
use serde::Deserialize;
use serde_json::{Map, Value};

/// A model defined under `[sim.<name>]`. Everything is optional: what is absent is as the name
/// alone would have it, so `[sim.judge]` with only a bias is still the judge.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Persona {
    /// Answers by what the user said; the first that fits is given.
    pub answers: Vec<Canned>,
    /// The answer when none of `answers` fits.
    pub default: Option<String>,
    /// Tools that it calls, one after the other, before it answers. Without an answer of its own it
    /// says what the last of them returned.
    pub calls: Vec<PlannedCall>,
    /// Probability that the right answer is given instead of the wrong one; 1 when absent.
    #[serde(deserialize_with = "some_share")]
    pub pass: Option<f64>,
    /// The wrong answer; `I do not know.` when absent.
    pub wrong: Option<String>,
    /// How long its answers take.
    pub latency: Option<Latency>,
    /// Prompt tokens of each request, instead of counting.
    pub input_tokens: Option<TokenCount>,
    /// Tokens of each answer, instead of counting.
    pub output_tokens: Option<TokenCount>,
    /// How much better than it is the first candidate looks to it; negative favours the others.
    /// A model with a bias and no answers of its own is a judge.
    pub bias: Option<f64>,
    /// Standard deviation of what it misperceives of each candidate's quality; 0 when absent.
    /// A model with noise and no answers of its own is a judge, too.
    #[serde(deserialize_with = "some_not_negative")]
    pub noise: Option<f64>,
    /// The quality written at the end of its made-up texts, instead of one derived from its name.
    #[serde(deserialize_with = "some_share")]
    pub quality: Option<f64>,
}

/// An answer prepared for something that the user may say.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Canned {
    /// Fits when the last user message contains it, upper or lower case.
    pub when: String,
    /// The answer.
    pub answer: String,
    /// Probability that it is given instead of the wrong one; the model's `pass` when absent. So a
    /// model can be better at one thing than at another.
    #[serde(default, deserialize_with = "some_share")]
    pub pass: Option<f64>,
}

/// A tool that a persona calls.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlannedCall {
    /// Which tool; it is called whether it is offered or not.
    pub tool: String,
    /// What it is given.
    #[serde(default)]
    pub arguments: Map<String, Value>,
}

impl Persona {
    /// The wrong answer.
    pub(crate) fn wrong(&self) -> &str {
        self.wrong.as_deref().unwrap_or("I do not know.")
    }

    /// The right answer to what the user said, if there is one, and how probable it is.
    pub(crate) fn right(&self, said: &str) -> Option<(&str, f64)> {
        let said = said.to_lowercase();
        let pass = self.pass.unwrap_or(1.0);
        self.answers
            .iter()
            .find(|canned| said.contains(&canned.when.to_lowercase()))
            .map(|canned| (canned.answer.as_str(), canned.pass.unwrap_or(pass)))
            .or(self.default.as_deref().map(|answer| (answer, pass)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_every_key_and_no_other() {
        let persona: Persona = toml::from_str(
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
        assert_eq!(persona.right("What is the CAPITAL of france?"), Some(("Paris", 0.9)));
        assert_eq!(persona.right("And of Spain?"), Some(("no idea", 0.8)));
        assert_eq!(persona.wrong(), "Rome");
        assert_eq!(persona.calls[0].arguments["path"], "a");
        assert_eq!(persona.calls[1].tool, "stop");
        assert_eq!(persona.latency, Some(Latency::Fixed { ms: 5.0 }));
        assert_eq!(persona.input_tokens, Some(TokenCount::Fixed(7)));
        assert_eq!(persona.output_tokens, Some(TokenCount::Lognormal { median: 9.0, sigma: 0.1 }));
        assert_eq!(
            (persona.pass, persona.bias, persona.noise, persona.quality),
            (Some(0.8), Some(-0.5), Some(0.2), Some(0.25))
        );
        assert_eq!(toml::from_str::<Persona>("").unwrap(), Persona::default());
        for bad in [
            "pass = 1.5",
            "noise = -0.1",
            "quality = -1",
            "qualty = 1",
            "answers = [{ when = 'a' }]",
            "calls = [{}]",
        ] {
            assert!(toml::from_str::<Persona>(bad).is_err(), "{bad}");
        }
    }
}
