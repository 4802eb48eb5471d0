//! Names that every provider takes: `^[a-zA-Z0-9_-]{1,64}$`.

use std::collections::BTreeSet;

/// Most characters of a name.
const LONGEST: usize = 64;

/// Names that were given, each once.
#[derive(Debug, Default)]
pub(super) struct Names(BTreeSet<String>);

impl Names {
    /// A name for a tool of a server, which nobody else has.
    pub(super) fn give(&mut self, server: &str, tool: &str) -> String {
        let plain = |letter: char| match letter {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '_' | '-' => letter,
            _ => '_',
        };
        let whole: String = format!("{server}__{tool}").chars().map(plain).collect();
        let mut name = whole[..whole.len().min(LONGEST)].to_owned();
        let mut number = 1_u64;
        while !self.0.insert(name.clone()) {
            number += 1;
            let end = format!("_{number}");
            name = format!("{}{end}", &whole[..whole.len().min(LONGEST - end.len())]);
        }
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_and_are_unique() {
        let mut names = Names::default();
        assert_eq!(names.give("fs", "read_file"), "fs__read_file");
        assert_eq!(names.give("fs", "a.b/ü c"), "fs__a_b___c");
        assert_eq!(names.give("fs", "a b ü.c"), "fs__a_b___c_2");
        let long = "x".repeat(100);
        let (first, second) = (names.give("fs", &long), names.give("fs", &format!("{long}y")));
        assert_eq!((first.len(), second.len()), (64, 64));
        assert!(second.ends_with("x_2"), "{second}");
        assert_eq!(names.give("", ""), "__");
    }
}
