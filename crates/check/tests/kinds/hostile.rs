//! Hostile outputs: no check panics or runs without bound.

use crate::{attempt_with, build_kind, check, expect_error};
use bakeoff_check::KINDS;

#[test]
fn hostile_outputs_do_not_panic() {
    let size = 1 << 17;
    let outputs = [
        String::new(),
        "\u{0}\u{feff}\u{202e}é".to_owned(),
        "a".repeat(size),
        "a ".repeat(size / 2),
        "[".repeat(size),
        "[".repeat(size / 2) + &"]".repeat(size / 2),
        "{\"a\":".repeat(size / 5),
        "<a>".repeat(size / 3),
        "- ".repeat(size / 2),
        "&a [".repeat(size / 4),
        "```\n".repeat(size / 4),
        "`".repeat(size),
        "a: &a [*a, *a]\n".to_owned() + &"b: [*a, *a, *a]\n".repeat(1000),
        "😀".repeat(size / 4),
        "I'm sorry, ".repeat(size / 11),
    ];
    for kind in KINDS {
        let lines = kind.example.replace("{{ expected }}", "Paris");
        let lines = lines.replace("{{ country }}", "France");
        for extract in ["", "\nextract = 'json'", "\nextract = 'code_block'"] {
            if !extract.is_empty() && !kind.extracts {
                continue;
            }
            let check = check(&(lines.clone() + extract), false);
            for output in &outputs {
                let _ = check.run(&attempt_with(output));
            }
        }
    }
}

#[test]
fn patterns_beyond_the_size_limit_are_rejected() {
    for pattern in ["(a{1000}){1000}", "((a{100}){100}){100}", "\\\\pL{5000}"] {
        expect_error(&format!("kind = 'regex'\nvalue = \"{pattern}\""), "value", "size limit");
    }
    let slow = check("kind = 'regex'\nvalue = '(a*)*b'", false);
    assert!(!slow.run(&attempt_with(&"a".repeat(1 << 20))).unwrap().passed);
    assert!(build_kind("kind = 'regex'\nvalue = '\\w{10}'").is_ok());
}
