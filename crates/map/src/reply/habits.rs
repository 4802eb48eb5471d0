//! What models write besides answers, and around them.

use super::*;
use crate::task::FieldType;

const NONE: &str = "the reply has no answer for it";

/// Two fields of an answer about `a` and `b`, which may both be left out if they may be: what is
/// there, or why not.
fn read(text: &str, format: Format, required: bool) -> Vec<String> {
    let field = |name: &str, kind| Field { required, ..Field::new(name, kind) };
    let fields = vec![field("label", FieldType::String), field("n", FieldType::Integer)];
    aligned(text, format, &Task::new("x", fields))
}

fn aligned(text: &str, format: Format, task: &Task) -> Vec<String> {
    let ids = ["a".to_owned(), "b".to_owned()];
    let shown = |answer: Result<Vec<Value>, String>| {
        answer.map_or_else(|reason| reason, |values| Value::from(values).to_string())
    };
    match align(text, format, task, &ids) {
        Ok(aligned) => aligned.answers.into_iter().map(shown).collect(),
        Err(problem) => vec![problem],
    }
}

/// The same answers in all forms.
const ANSWERS: [(Format, &str); 3] = [
    (Format::Json, r#"{"items":[{"id":"a","label":"x","n":1},{"id":"b","label":"y","n":2}]}"#),
    (
        Format::Xml,
        "<item id=\"a\"><label>x</label><n>1</n></item>\n<item id=\"b\"><label>y</label><n>2</n></item>",
    ),
    (Format::Yaml, "- id: a\n  label: x\n  n: 1\n- id: b\n  label: y\n  n: 2\nend: true"),
];

const BOTH: [&str; 2] = [r#"["x",1]"#, r#"["y",2]"#];

#[test]
fn what_was_thought_before_an_answer_is_no_answer() {
    let thoughts = [
        r#"The first is {"id":"a","data":{"text":"…"}}, so {"id":"a","label":"draft","n":9}."#,
        "- id: b\n  label: draft\n  n: 9\n\nNo, that is <item id=\"b\"><label>draft</label><n>9</n></item>",
        "I have to write <item id=\"…\"> or { first.",
    ];
    for (format, answers) in ANSWERS {
        for thought in thoughts {
            for text in [
                format!("<think>\n{thought}\n</think>\n\n{answers}"),
                format!("\n <Thinking>{thought}</Thinking>{answers}"),
            ] {
                assert_eq!(read(&text, format, true), BOTH, "{text}");
            }
            // It never comes to an answer.
            let text = format!("<think>\n{thought}\n{answers}");
            assert_eq!(read(&text, format, true), ["it ends while thinking"], "{text}");
        }
        // The server has left out where it begins.
        for thought in &thoughts[..2] {
            for text in [
                format!("{thought}\n</think>\n\n{answers}"),
                format!("{thought} So be it.</think>{answers}"),
                format!("<think>I end with </think> then.\n{thought}\n</think>\n{answers}"),
            ] {
                assert_eq!(read(&text, format, true), BOTH, "{text}");
            }
        }
    }
}

#[test]
fn answers_about_thinking_are_answers() {
    let label = "a </think> b";
    for (format, text) in [
        (
            Format::Json,
            r#"[{"id":"a","label":"a </think> b","n":1},{"id":"b","label":"a </think> b","n":2}]"#,
        ),
        (
            Format::Json,
            "{\"id\":\"a\",\"label\":\"a </think> b\",\"n\":1}\n{\"id\":\"b\",\"label\":\"a </think> b\",\"n\":2}",
        ),
        (
            Format::Xml,
            "<item id=\"a\">\n<label>a &lt;/think> b</label><n>1</n></item><item id=\"b\">\n<label><![CDATA[a </think> b]]></label><n>2</n></item>",
        ),
        (
            Format::Yaml,
            "- id: a\n  label: a </think> b\n  n: 1\n- label: a </think> b\n  id: b\n  n: 2\nend: true",
        ),
    ] {
        let expected = [format!("[\"{label}\",1]"), format!("[\"{label}\",2]")];
        assert_eq!(read(text, format, true), expected, "{text}");
    }
}

#[test]
fn who_is_only_mentioned_is_not_answered() {
    let echo = r#"{"id":"a","data":{"label":"z","n":7}}"#;
    for mention in [
        format!("{echo}\n"),
        "{\"id\":\"a\",\"why\":\"it is short\"}\n".to_owned(),
        "{\"id\":\"a\"}\n".to_owned(),
        "<item id=\"a\"/>\n".to_owned(),
        "<item id=\"a\"><data>z</data></item>\n".to_owned(),
        "- id: a\n  why: so\nend: true\n\n".to_owned(),
    ] {
        for (format, answers) in ANSWERS {
            for required in [true, false] {
                let text = format!("{mention}{answers}");
                assert_eq!(read(&text, format, required), BOTH, "{text}");
                let text = format!("{answers}\n\n{mention}");
                assert_eq!(read(&text, format, required), BOTH, "{text}");
            }
        }
    }
    // Where everything may be left out, it is an answer that leaves everything out.
    assert_eq!(read(r#"[{"id":"a"}]"#, Format::Json, false), ["[null,null]", NONE]);
    assert_eq!(read(r#"[{"id":"a"}]"#, Format::Json, true), ["`label` is missing", NONE]);
    // What is broken may have been an answer.
    let text = r#"[{"id":"a","label":"x","n":1},{"id":"a","label":},{"id":"b"}]"#;
    let expected = ["the reply has several different answers for it", "[null,null]"];
    assert_eq!(read(text, Format::Json, false), expected);
}
