//! Outputs made to break checks: nothing panics, and nothing takes for ever.

use crate::{built, check, refused, said};
use bakeoff_check::KINDS;

#[test]
fn every_kind_survives_every_hostile_output() {
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
        for part in ["", "\nextract = 'json'", "\nextract = 'code_block'"] {
            if !part.is_empty() && !kind.extracts {
                continue;
            }
            let check = check(&(lines.clone() + part), false);
            for output in &outputs {
                let _ = check.run(&said(output));
            }
        }
    }
}

#[test]
fn patterns_that_multiply_themselves_are_refused() {
    for pattern in ["(a{1000}){1000}", "((a{100}){100}){100}", "\\\\pL{5000}"] {
        refused(&format!("kind = 'regex'\nvalue = \"{pattern}\""), "value", "size limit");
    }
    let slow = check("kind = 'regex'\nvalue = '(a*)*b'", false);
    assert!(!slow.run(&said(&"a".repeat(1 << 20))).unwrap().passed);
    assert!(built("kind = 'regex'\nvalue = '\\w{10}'").is_ok());
}
