//! Verdicts that are JSON objects.

use super::InvalidReply;
use serde::Deserialize;

/// Parses the JSON object that a reply ends with. It starts a line, may stand in a code block, and nothing
/// follows it. Returns the object and the evidence before it.
pub(crate) fn parse_object<T: for<'de> Deserialize<'de>>(
    reply: &str,
) -> Result<(T, &str), InvalidReply> {
    let reply = reply.trim();
    let (evidence, body) = match last_code_block(reply) {
        Some(parts) => parts,
        None => reply.split_at(object_start(reply)),
    };
    let parsed = serde_json::from_str(body).map_err(|error| error.to_string());
    match parsed {
        // Serde also accepts a list for a struct.
        Ok(_) if !body.trim_start().starts_with('{') => Err("expected an object".to_owned()),
        parsed => parsed,
    }
    .map(|object| (object, evidence.trim()))
    .map_err(|problem| {
        InvalidReply::new(format!(
            "does not end with the JSON object that was asked for: {problem}"
        ))
    })
}

/// Splits a reply that ends with a code block into the text before the block and the block's content.
fn last_code_block(reply: &str) -> Option<(&str, &str)> {
    let rest = reply.strip_suffix("```")?;
    let open = match rest.rfind("\n```") {
        Some(line_break) => line_break + 1,
        None => rest.starts_with("```").then_some(0)?,
    };
    let (evidence, block) = rest.split_at_checked(open)?;
    let (_, body) = block.split_once('\n')?;
    Some((evidence, body))
}

/// Returns where the last line that starts with a brace starts, else the start of the last line.
fn object_start(reply: &str) -> usize {
    match (reply.rfind("\n{"), reply.rfind('\n')) {
        (Some(line_break), _) => line_break + 1,
        (None, _) if reply.starts_with('{') => 0,
        (None, line_break) => line_break.map_or(0, |line_break| line_break + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(deny_unknown_fields)]
    struct Object {
        score: u64,
    }

    #[test]
    fn object_at_the_end_is_parsed() {
        for (reply, score, evidence) in [
            ("{\"score\": 3}", 3, ""),
            ("It is fine.\n{\"score\": 3}\n", 3, "It is fine."),
            ("It is fine.\n\n```json\n{\"score\": 3}\n```", 3, "It is fine."),
            ("```\n{\"score\": 3}\n```", 3, ""),
            ("Fine.\r\n{\r\n  \"score\": 3\r\n}", 3, "Fine."),
            // The last object counts; an earlier one is evidence.
            ("It wrote\n{\"score\": 5}\n{\"score\": 1}", 1, "It wrote\n{\"score\": 5}"),
            ("```\n{\"score\": 5}\n```\n\n```\n{\"score\": 1}\n```", 1, "```\n{\"score\": 5}\n```"),
        ] {
            assert_eq!(parse_object(reply), Ok((Object { score }, evidence)), "{reply:?}");
        }
    }

    #[test]
    fn object_that_is_not_alone_at_the_end_is_invalid() {
        for reply in [
            "",
            "It is fine.",
            "Verdict: {\"score\": 3}",
            "{\"score\": 3} as I said",
            "{\"score\": 3}\nThat is all.",
            "```json\n{\"score\": 3}\n```\nThat is all.",
            "{\"score\": 3} {\"score\": 4}",
            "{\"score\": 3, \"score\": 4}",
            "{\"score\": 3, \"more\": 4}",
            "{\"score\": 3",
            "```",
            "``````",
            "[3]",
            "3",
        ] {
            parse_object::<Object>(reply).expect_err(reply);
        }
    }
}
