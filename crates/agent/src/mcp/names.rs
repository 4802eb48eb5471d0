//! Tool names that all providers accept: `^[a-zA-Z0-9_-]{1,64}$`.

use std::collections::BTreeSet;

/// Maximum length of a name.
const MAX_NAME_LEN: usize = 64;

/// Names in use.
#[derive(Debug, Default)]
pub(super) struct ToolNames(BTreeSet<String>);

impl ToolNames {
    /// Returns a unique name for a tool of a server.
    pub(super) fn assign(&mut self, server: &str, tool: &str) -> String {
        let sanitize = |letter: char| match letter {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '_' | '-' => letter,
            _ => '_',
        };
        let whole: String = format!("{server}__{tool}").chars().map(sanitize).collect();
        let mut name = whole[..whole.len().min(MAX_NAME_LEN)].to_owned();
        let mut number = 1_u64;
        while !self.0.insert(name.clone()) {
            number += 1;
            let suffix = format!("_{number}");
            name = format!("{}{suffix}", &whole[..whole.len().min(MAX_NAME_LEN - suffix.len())]);
        }
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_valid_and_unique() {
        let mut names = ToolNames::default();
        assert_eq!(names.assign("fs", "read_file"), "fs__read_file");
        assert_eq!(names.assign("fs", "a.b/ü c"), "fs__a_b___c");
        assert_eq!(names.assign("fs", "a b ü.c"), "fs__a_b___c_2");
        let long = "x".repeat(100);
        let (first, second) = (names.assign("fs", &long), names.assign("fs", &format!("{long}y")));
        assert_eq!((first.len(), second.len()), (64, 64));
        assert!(second.ends_with("x_2"), "{second}");
        assert_eq!(names.assign("", ""), "__");
    }
}
