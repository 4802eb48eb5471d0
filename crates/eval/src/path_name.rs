//! Names that are safe in paths.

use crate::folder::{
    CASES_FILE, HTTP_FILE, JOURNAL_FILE, LIMITS_FILE, RUN_FILE, SELECTION_FILE, SUMMARY_FILE,
};

/// Names that the folder of a case or target must not have.
const RESERVED: [&str; 8] = [
    RUN_FILE,
    CASES_FILE,
    JOURNAL_FILE,
    LIMITS_FILE,
    HTTP_FILE,
    SUMMARY_FILE,
    SELECTION_FILE,
    "work",
];

/// Returns a name for use in paths: the text itself if it is safe, else its safe characters with a hash of
/// the text, so that different texts have different names on all file systems.
pub(crate) fn safe_name(text: &str) -> String {
    const MAX_BYTES: usize = 80;
    let is_plain =
        |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_' | '.');
    let is_device = |name: &str| {
        let stem = name.split('.').next().unwrap_or_default();
        matches!(stem, "con" | "prn" | "aux" | "nul")
            || (stem.len() == 4
                && (stem.starts_with("com") || stem.starts_with("lpt"))
                && stem.ends_with(|c: char| c.is_ascii_digit()))
    };
    let is_safe = !text.is_empty()
        && text.len() <= MAX_BYTES
        && text.chars().all(is_plain)
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && !text.ends_with('.')
        && !RESERVED.contains(&text)
        && !is_device(text)
        && !looks_hashed(text);
    if is_safe {
        return text.to_owned();
    }
    let kept: String = text
        .chars()
        .take(MAX_BYTES / 2)
        .map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' })
        .collect();
    let hash = blake3::hash(text.as_bytes()).to_hex();
    format!("{}-{}", kept.trim_start_matches(['_', '-']), &hash[..12])
        .trim_start_matches('-')
        .to_owned()
}

/// Whether a text ends like a name with a hash, and so could equal the name of another text.
fn looks_hashed(text: &str) -> bool {
    let end = text.rsplit('-').next().unwrap_or_default();
    end.len() == 12 && end.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn safe_names_stay_in_the_folder_and_are_unique() {
        let long = "x".repeat(300);
        let longer = "x".repeat(301);
        let hashed = safe_name("a/b");
        let ids = [
            "fr",
            "FR",
            "Fr",
            "a/b",
            "a\\b",
            "a_b",
            "a b",
            "..",
            ".",
            "",
            "../../etc/x",
            "CON",
            "con",
            "nul.txt",
            "summary.json",
            "é",
            "e",
            "trial-1",
            "-x",
            "x.",
            &hashed,
            &long,
            &longer,
        ];
        let names: Vec<String> = ids.iter().map(|id| safe_name(id)).collect();
        let folded: HashSet<String> = names.iter().map(|name| name.to_lowercase()).collect();
        assert_eq!(folded.len(), ids.len(), "{names:?}");
        for name in &names {
            assert!(name.len() <= 80 && !name.is_empty(), "{name}");
            assert!(!name.contains(['/', '\\', ' ']) && !name.starts_with('.'), "{name}");
        }
        assert_eq!((names[0].as_str(), names[5].as_str()), ("fr", "a_b"));
    }
}
