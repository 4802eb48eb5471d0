//! Which models are of one kind, as far as names tell.

use crate::judge::LlmJudgeEvaluation;
use crate::names::Names;
use crate::outcome::ParallelLoopOutcome;

/// Words in names that say whose model it is, wherever it is served.
const FAMILIES: [&str; 16] = [
    "claude", "gpt", "gemini", "gemma", "llama", "mistral", "mixtral", "qwen", "deepseek", "grok",
    "command", "phi", "nova", "kimi", "glm", "jamba",
];

/// The kind of a model named `provider.model`: a family that is known, or else the first word of the
/// model's name.
fn family(segment: &str) -> String {
    let segment = segment.to_lowercase();
    let (provider, model) = segment.split_once('.').unwrap_or(("", &segment));
    let words: Vec<&str> = model
        .split(|letter: char| !letter.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .collect();
    let known = |word: &&str| FAMILIES.iter().find(|family| word.starts_with(**family));
    if let Some(family) = words.iter().find_map(known) {
        return (*family).to_owned();
    }
    // Its models that think have numbers of their own.
    if provider == "openai" {
        return "gpt".to_owned();
    }
    // Simulated models carry the provider in front of their names.
    let first = words.iter().find(|word| **word != "sim");
    first.map(|word| (*word).to_owned()).unwrap_or_default()
}

/// A warning about a judge who judges its own kind.
pub(crate) fn kinship(
    judge: &LlmJudgeEvaluation,
    places: &[usize],
    outcomes: &[ParallelLoopOutcome],
    names: &Names,
) -> Option<String> {
    let own = family_of(judge);
    let is_kin = |place: &&usize| {
        outcomes.get(**place).is_some_and(|branch| family(branch.loop_id.segment()) == own)
    };
    let kin: Vec<usize> = places.iter().filter(is_kin).copied().collect();
    (!kin.is_empty()).then(|| {
        format!(
            "warning: {} is of the same family as {}, and models like their own kind",
            judge.judge_config.segment(),
            names.list(&kin, "and")
        )
    })
}

pub(super) fn family_of(judge: &LlmJudgeEvaluation) -> String {
    let model = &judge.judge_config.model;
    family(&format!("{}.{}", model.provider(), model.name()))
}

#[cfg(test)]
mod tests {
    use super::family;

    #[test]
    fn names_tell_families() {
        for (segment, expected) in [
            ("anthropic.claude-opus-4-6", "claude"),
            ("openrouter.anthropic-claude-haiku-4-5", "claude"),
            ("openai.gpt-4o-mini", "gpt"),
            ("openai.o3", "gpt"),
            ("groq.llama3-70b.thinking", "llama"),
            ("sim.fine-7b", "fine"),
            ("sim.sim/fine", "fine"),
            ("my own", "my"),
            ("", ""),
        ] {
            assert_eq!(family(segment), expected, "{segment}");
        }
    }
}
