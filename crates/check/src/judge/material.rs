//! The layout of a judge's prompt.

use super::{Fence, JudgeQuestion};

/// The texts that a judge sees. All but the background are untrusted and fenced.
///
/// ```
/// use bakeoff_check::judge::{BestResponse, JudgeMaterial};
///
/// let material = JudgeMaterial { query: Some("2 + 2?"), responses: &["4", "5"], ..JudgeMaterial::default() };
/// let prompt = material.prompt(&BestResponse { responses: 2 });
/// assert!(prompt.starts_with("Original query:\n<query "));
/// assert!(prompt.ends_with("with ONLY the response number (e.g., \"1\" or \"2\")."));
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct JudgeMaterial<'t> {
    /// Text of the check's author, which opens the prompt without a fence.
    pub background: Option<&'t str>,
    /// Transcript of the conversation before the query.
    pub context: Option<&'t str>,
    /// The query that the responses answer.
    pub query: Option<&'t str>,
    /// The responses; several are numbered from 1 in this order.
    pub responses: &'t [&'t str],
}

impl JudgeMaterial<'_> {
    /// Returns the user message that presents the material and asks the question.
    pub fn prompt(&self, question: &impl JudgeQuestion) -> String {
        // The background is trusted, but may quote a case that imitates a fence.
        let others = [self.background, self.context, self.query].into_iter().flatten();
        let texts: Vec<&str> = others.chain(self.responses.iter().copied()).collect();
        let fence = Fence::of(&texts);
        let mut prompt = String::new();
        if let Some(background) = self.background {
            prompt.push_str(&format!("{background}\n\n"));
        }
        if let Some(context) = self.context {
            let context = fence.around("context", context);
            prompt.push_str(&format!("Prior conversation context:\n{context}\n"));
        }
        if let Some(query) = self.query {
            prompt.push_str(&format!("Original query:\n{}\n", fence.around("query", query)));
        }
        match self.responses {
            [response] => {
                prompt.push_str(&format!("Response:\n{}\n", fence.around("response", response)));
            }
            responses => {
                for (number, response) in (1..).zip(responses) {
                    let response = fence.around(&format!("response_{number}"), response);
                    prompt.push_str(&format!("Response {number}:\n{response}\n"));
                }
            }
        }
        let text = question.text();
        let separator = if text.contains('\n') { "\n\n" } else { " " };
        prompt.push_str(&format!(
            "{text}{separator}First say in one or two sentences what decides it. Then reply, on a last line of its own, with ONLY {}.",
            question.verdict_form()
        ));
        prompt
    }
}
