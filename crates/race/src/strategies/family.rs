//! Model families, derived from model names.

use crate::judge::LlmJudgeEvaluation;
use crate::names::BranchNames;
use crate::outcome::ParallelLoopOutcome;

/// Words in model names that identify the family, regardless of the provider.
const FAMILIES: [&str; 16] = [
    "claude", "gpt", "gemini", "gemma", "llama", "mistral", "mixtral", "qwen", "deepseek", "grok",
    "command", "phi", "nova", "kimi", "glm", "jamba",
];

/// Returns the family of `provider.model`: a known family, or else the first word of the model's name.
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
    // OpenAI's reasoning models are named o1, o3, ….
    if provider == "openai" {
        return "gpt".to_owned();
    }
    // BranchNames of simulated models may start with the provider.
    let first = words.iter().find(|word| **word != "sim");
    first.map(|word| (*word).to_owned()).unwrap_or_default()
}

/// Returns a warning if the judge is of the same family as a candidate.
pub(crate) fn family_warnings(
    judge: &LlmJudgeEvaluation,
    candidates: &[usize],
    outcomes: &[ParallelLoopOutcome],
    names: &BranchNames,
) -> Option<String> {
    let own = family_of(judge);
    let is_related = |index: &&usize| {
        outcomes.get(**index).is_some_and(|branch| family(branch.loop_id.segment()) == own)
    };
    let related: Vec<usize> = candidates.iter().filter(is_related).copied().collect();
    (!related.is_empty()).then(|| {
        format!(
            "warning: {} is of the same family as {}; models tend to prefer their own family",
            judge.judge_config.segment(),
            names.list(&related, "and")
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
    fn family_is_derived_from_the_name() {
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
