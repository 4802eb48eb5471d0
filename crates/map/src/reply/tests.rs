//! Replies as models write them.

use super::*;
use crate::task::FieldType;
use proptest::prelude::*;
use serde_json::json;

fn task() -> Task {
    let number = Field { required: false, ..Field::new("n", FieldType::Integer) };
    let tags = Field { default: Some(json!([])), ..Field::new("tags", FieldType::Array) };
    let mut task = Task::new("x", vec![Field::new("label", FieldType::String), number, tags]);
    task.batch = vec![Field::new("language", FieldType::String)];
    task
}

/// `ab=label,n,tags` for each answer, and the reason where there is none.
fn aligned(text: &str, format: Format) -> Vec<String> {
    let ids = ["ab".to_owned(), "cd".to_owned()];
    match align(text, format, &task(), &ids) {
        Ok(aligned) => ids
            .iter()
            .zip(aligned.answers)
            .map(|(id, answer)| match answer {
                Ok(values) => {
                    let values: Vec<String> = values.iter().map(Value::to_string).collect();
                    format!("{id}={}", values.join(" "))
                }
                Err(reason) => format!("{id}: {reason}"),
            })
            .collect(),
        Err(problem) => vec![problem],
    }
}

#[test]
fn good_replies_in_all_forms_and_wrappings() {
    let expected = [r#"ab="x: <y>" 3 ["p","q"]"#, r#"cd="z" null []"#];
    let json = r#"{"items": [{"id": "cd", "label": "z"}, {"id": "ab", "label": "x: <y>", "n": "3", "tags": ["p", "q"]}]}"#;
    let by_id =
        r#"{"cd": {"label": "z"}, "ab": {"label": "x: <y>", "n": 3, "tags": ["p", "q",],},}"#;
    let lines = "{\"id\":\"ab\",\"label\":\"x: <y>\",\"n\":3,\"tags\":[\"p\",\"q\"]}\n{\"id\":\" CD \",\"label\":\"z\",\"n\":None}";
    let xml = r#"<reply><item id="ab"><label>x: &lt;y&gt;</label><n> 3 </n><tags><value>p</value><value>q</value></tags></item>
        <item><id>cd</id><label><![CDATA[z]]></label></item></reply>"#;
    let loose = "<item id='ab'><label>x: <y></label><n>3</n><tags>p</tags><tags>q</tags><more/></item> <item id='cd'><label>z</label></item>";
    let yaml = "items:\n  - id: ab\n    label: 'x: <y>'\n    n: 3\n    tags: [p, q]\n  - id: \"cd\"\n    label: |-\n      z\nend: true";
    let flat = "- label: 'x: <y>'\n  n: 3\n  tags:\n  - p\n  - q\n  id: ab\n- id: cd\n  label: z\n  n: ~\n...";
    for text in [json, by_id, lines, xml, loose, yaml, flat] {
        for format in Format::ALL {
            assert_eq!(aligned(text, format), expected, "{format}\n{text}");
            let fenced = format!("Here you {{are}}:\n```\n{text}\n```\nAnything <else>?\n- no");
            assert_eq!(aligned(&fenced, format), expected, "{format}\n{fenced}");
        }
    }
}

#[test]
fn what_is_said_once_for_all() {
    for text in [
        r#"{"batch": {"language": "en"}, "items": [{"id": "ab", "label": "x"}]}"#,
        "<batch><language>en</language></batch><item id=\"ab\"><label>x</label></item>",
        "batch:\n  language: en\nitems:\n  - id: ab\n    label: x\nend: true",
    ] {
        let aligned = align(text, Format::Json, &task(), &["ab".to_owned()]).unwrap();
        assert_eq!(aligned.batch, Some(vec![json!("en")]), "{text}");
        assert!(aligned.answers[0].is_ok(), "{text}");
    }
    // One that does not fit takes nothing from the others.
    let mut task = task();
    task.batch.push(Field { max: Some(3.0), ..Field::new("share", FieldType::Number) });
    let text =
        r#"{"batch": {"language": "en", "share": 9}, "items": [{"id": "ab", "label": "x"}]}"#;
    let aligned = align(text, Format::Json, &task, &["ab".to_owned()]).unwrap();
    assert_eq!(aligned.batch, Some(vec![json!("en"), Value::Null]));
}

#[test]
fn missing_double_unknown_and_malformed_items_are_told_apart() {
    let shown = |text: &str| aligned(text, Format::Json).join("\n");
    insta::assert_snapshot!(shown(r#"[{"id":"ab","label":"x"},{"id":"zz","label":"y"}]"#), @r#"
    ab="x" null []
    cd: the reply has no answer for it, and 1 for ids that nobody has
    "#);
    insta::assert_snapshot!(shown(r#"[{"id":"ab","label":"x"},{"id":"ab","label":"x","n":null},{"id":"cd","label":"y"},{"id":"cd","label":"w"}]"#), @r#"
    ab="x" null []
    cd: the reply has several different answers for it
    "#);
    insta::assert_snapshot!(shown(r#"[{"id":"ab","n":1.5,"label":"x"},{"id":"cd"}]"#), @r"
    ab: `n` is 1.5, not a value of type integer
    cd: `label` is missing
    ");
    insta::assert_snapshot!(shown("<item id=\"ab\"><label>x</label><label>y</label></item><item id=\"cd\"><label>z</label></item>"), @r#"
    ab: `label` comes twice
    cd="z" null []
    "#);
    insta::assert_snapshot!(shown("- id: ab\n  label: a: b\n- id: cd\n  label: fine\nend: true"), @r#"
    ab: not YAML: mapping values are not allowed in this context
    cd="fine" null []
    "#);
    // Items of strangers are a reply that can be read; prose is not.
    insta::assert_snapshot!(shown(r#"{"items":[{"id":"zz","label":"x"}]}"#), @r"
    ab: the reply has no answer for it, and 1 for ids that nobody has
    cd: the reply has no answer for it, and 1 for ids that nobody has
    ");
    insta::assert_snapshot!(shown("I cannot help with that."), @"there is no JSON object with items in it");
    insta::assert_snapshot!(shown("{\"items\":\n[{\"id\":\"ab\",\"label\":x}]}"), @"a text without quotes (line 2 of the reply)");
    insta::assert_snapshot!(shown(r#"{"items":[{"label":"x"},{"label":"y"}]}"#), @"no item has an id");
    insta::assert_snapshot!(shown("<item><label>x</label></item>"), @"no item has an id");
    insta::assert_snapshot!(shown("- label: x\n- label: y\nend: true"), @"no item has an id");
    insta::assert_snapshot!(aligned("hm", Format::Xml).join(""), @"there is no <item> in it");
    insta::assert_snapshot!(aligned("- id: ab\n  label: x", Format::Yaml).join(""), @"it ends in the middle of an item, or without the last line `end: true`");
}

/// A task whose answers hold objects, and its answers about `a` and `b`.
fn nested(text: &str, format: Format) -> Vec<String> {
    let optional = |name: &str, kind| Field { required: false, ..Field::new(name, kind) };
    let related = Field { items: FieldType::Object, ..optional("related", FieldType::Array) };
    let fields =
        vec![optional("note", FieldType::String), optional("of", FieldType::Object), related];
    let ids = ["a".to_owned(), "b".to_owned()];
    match align(text, format, &Task::new("x", fields), &ids) {
        Ok(aligned) => aligned
            .answers
            .into_iter()
            .map(|answer| answer.map_or_else(|reason| reason, |values| values[0].to_string()))
            .collect(),
        Err(problem) => vec![problem],
    }
}

/// Two fields of an answer about `a` and `b`, which may both be left out: what is there, or why not.
fn loose(text: &str) -> Vec<String> {
    let optional = |name: &str, kind| Field { required: false, ..Field::new(name, kind) };
    let fields = vec![optional("note", FieldType::String), optional("score", FieldType::Integer)];
    let ids = ["a".to_owned(), "b".to_owned()];
    match align(text, Format::Xml, &Task::new("x", fields), &ids) {
        Ok(aligned) => aligned
            .answers
            .into_iter()
            .map(|answer| {
                answer.map_or_else(|reason| reason, |values| Value::from(values).to_string())
            })
            .collect(),
        Err(problem) => vec![problem],
    }
}

const NONE: &str = "the reply has no answer for it";

#[test]
fn an_xml_item_never_takes_what_belongs_to_the_next() {
    let b = r#"<item id="b"><note>n1</note><score>1</score></item>"#;
    let second = r#"["n1",1]"#;
    for (broken, first) in [
        (r#"<item id="a"><note>n0<score>0</score></item>"#, "`note` has no end"),
        (r#"<item id="a"><note>n0</item>"#, "`note` has no end"),
        (r#"<item id="a"><note>n0</note>"#, "an <item> has no end"),
        (r#"<item id="a"><note>n0"#, "an <item> has no end"),
        (r#"<item id="a"><note><![CDATA[n0</note></item>"#, "`note` has no end"),
        (r#"<item id="a>"#, NONE),
        (r#"<item id="a"#, NONE),
        (r#"<item id="a"><note>n0<note>n</note></item>"#, "`note` has no end"),
        (r#"<item id="a">n0</note></item>"#, "an <item> has a text outside of its fields"),
        (r#"<item id="a"><note>n <item></note></item>"#, "an <item> has no end"),
        (r#"<item id="a"><note>n <sco</note></item>"#, "`note` has a `<` that should be `&lt;`"),
        (
            r#"<item id="a"><note>n <em id="b">"</note></item>"#,
            "`note` has a `<` that should be `&lt;`",
        ),
        (r#"<item id="a"><id>b</id><note>n0</note></item>"#, "an <item> has two ids"),
    ] {
        assert_eq!(loose(&format!("{broken}{b}")), [first, second], "{broken}");
    }
    // Its beginning is lost, or one lies within the other.
    let lost = r#"<item id="a"><score>0</score> id="b"><note>n1</note></item>"#;
    assert_eq!(loose(lost), ["an <item> has a text outside of its fields"]);
    let within = format!(r#"<item id="a"><score>0</score>{b}<note>n0</note></item>"#);
    assert_eq!(loose(&within), ["an <item> has no end", second]);
    // What is escaped is a text like any other.
    let quoted = r#"<item id="a"><note>see &lt;item id="b"&gt; or &lt;score&gt;, 1 < 2, <b>so</b></note></item>"#;
    let expected = r#"["see <item id=\"b\"> or <score>, 1 < 2, <b>so</b>",null]"#;
    assert_eq!(loose(quoted), [expected, NONE]);
}

#[test]
fn empty_elements_and_white_space_in_xml() {
    for (inner, expected) in [
        ("<note></note><score></score>", r#"["",null]"#),
        ("<note/><score />", r#"["",null]"#),
        ("<note> x </note><score> 3 </score>", r#"[" x ",3]"#),
        ("<note>\n    x\n  y\n  </note>", r#"["x\n  y",null]"#),
        ("<note>x\n</note><score>\n3\n</score>", r#"["x\n",3]"#),
        ("<note>\n</note>", r#"["",null]"#),
        ("<note> <![CDATA[ <b> ]]> </note>", r#"[" <b> ",null]"#),
    ] {
        let text = format!("<item id=\"a\">{inner}</item>");
        assert_eq!(loose(&text), [expected, NONE], "{inner}");
    }
    let label =
        Field { options: Some(vec![json!("good")]), ..Field::new("label", FieldType::String) };
    let task = Task::new("x", vec![Field { default: Some(json!("good")), ..label }]);
    let read = align("<item id=\"a\"><label/></item>", Format::Xml, &task, &["a".to_owned()]);
    assert_eq!(read.unwrap().answers, [Ok(vec![json!("good")])]);
}

#[test]
fn what_lies_within_a_json_item_is_never_an_item() {
    let decoy = r#"{"id":"b","note":"decoy"}"#;
    for (text, expected) in [
        // Whole, and cut at several places.
        (
            format!(r#"[{{"id":"a","of":{decoy},"related":[{decoy}],"note":"n0"}}]"#),
            vec![r#""n0""#, NONE],
        ),
        (
            format!(r#"[{{"related":[{decoy}],"of":{decoy},"id":"a","note":"n0"}}]"#),
            vec![r#""n0""#, NONE],
        ),
        (format!(r#"[{{"id":"a","of":{decoy},"no"#), vec!["it ends in the middle"]),
        (format!(r#"[{{"id":"a","related":[{decoy},{{"k":1"#), vec!["it ends in the middle"]),
        (
            format!(r#"[{{"id":"a","note":n0,"related":[{decoy}]}}, {{"id":"b","note":"n1"}}]"#),
            vec!["a text without quotes (line 1 of the reply)", r#""n1""#],
        ),
        (
            format!(r#"["id":"a","related":[{decoy}]}}]"#),
            vec!["expected a comma or `]` (line 1 of the reply)"],
        ),
        // Under the id of an item, an object says whose it is at most once.
        (
            r#"{"a":{"id":"b","note":"n1"},"b":{"note":"n1"}}"#.to_owned(),
            vec!["it stands under `a` and has the id `b`", r#""n1""#],
        ),
    ] {
        assert_eq!(nested(&text, Format::Json), expected, "{text}");
    }
    for text in [
        format!("<item id=\"a\"><of>{decoy}</of><note>n0</note></item>"),
        format!("- id: a\n  of: {decoy}\n  note: n0\nend: true"),
    ] {
        for format in Format::ALL {
            let read = nested(&text, format);
            assert!(
                !read.iter().any(|answer| answer.contains("decoy")),
                "{format} {text}: {read:?}"
            );
        }
        let format = if text.starts_with('<') { Format::Xml } else { Format::Yaml };
        assert_eq!(nested(&text, format), [r#""n0""#, NONE]);
    }
}

#[test]
fn json_items_that_run_into_each_other_are_not_mixed() {
    for (text, expected) in [
        // The first one's end, both ends, the second one's beginning, a quote.
        (
            r#"[{"id":"a","score":0,{"id":"b","note":"n1"}]"#,
            vec!["expected a name in double quotes (line 1 of the reply)", r#"["n1",null]"#],
        ),
        (
            r#"[{"id":"a","score":0,"id":"b","note":"n1"}]"#,
            vec!["`id` comes twice (line 1 of the reply)"],
        ),
        (r#"[{"id":"a","score":0},"id":"b","note":"n1"}]"#, vec!["[null,0]", NONE]),
        (
            r#"[{"id":"a","note":"n0},{"id":"b","score":1}]"#,
            vec!["expected a comma or `}` (line 1 of the reply)"],
        ),
        (
            r#"[{"id":"a","note":"5" wide","score":0},{"id":"b","score":1}]"#,
            vec!["expected a comma or `}` (line 1 of the reply)", "[null,1]"],
        ),
        (
            r#"[{"id":"a","note":"n","note":"n"},{"id":"b","score":1}]"#,
            vec!["`note` comes twice (line 1 of the reply)", "[null,1]"],
        ),
        (
            r#"[{"id":"a","":"b","score":1}]"#,
            vec!["it has the id of another item in it, at ``", NONE],
        ),
    ] {
        assert_eq!(loose(text), expected, "{text}");
    }
}

#[test]
fn yaml_items_that_run_into_each_other_are_not_mixed() {
    let torn = |name: &str| format!("`{name}` is not indented like the item that it follows");
    for (text, first) in [
        ("- id: a\n  note: n\n  score: 0\n  note: n\n", "`note` comes twice".to_owned()),
        ("- id: a\n  score: 0\n  id: b\n  note: n1\n", "`id` comes twice".to_owned()),
        ("- id: a\n  score: 0\nid: b\n  note: n1\n", torn("id")),
        ("- id: a\n  score: 0\nnote: n1\n", torn("note")),
        ("- id: a\n  score: 0\n\tnote: n0\n", "a tab is no indentation".to_owned()),
        (
            "- id: a\n  note: \"n0\n    score: 0\"\n",
            "a text goes over several lines without `|`".to_owned(),
        ),
        ("- id: a\n  note: [n0\n", "not YAML: ".to_owned()),
        ("- id: a\n  note: :\"n1\", so\n", "a text that has lost its beginning".to_owned()),
    ] {
        let read = loose(&format!("{text}- id: c\n  note: n2\nend: true"));
        assert!(read[0].starts_with(&first), "{text}: {read:?}");
        assert_eq!(read[1].split(',').next(), Some(NONE), "{text}");
    }
    let comments =
        "- id: a\n  note: Ranked #1\n- id: b\n  note: x#1\n  score: 3 # stars\nend: true";
    assert_eq!(loose(comments), ["a text with ` #` in it is not in quotes", r#"["x#1",3]"#]);
    let rest = "- id: a\n  note: \"x\" # 5\\\" wide\"\n- id: b\n  note: \"3\" # stars\nend: true";
    assert_eq!(loose(rest), ["there is more behind a text in quotes", r#"["3",null]"#]);
    // Lists in texts, also where the item around them has lost its beginning.
    let text = "- id: a\n  note: |\n    - id: b\n      note: n\n  score: 0\nend: true";
    assert_eq!(loose(text), [r#"["- id: b\n  note: n\n",0]"#, NONE]);
    let lost = "  id: a\n  note: |\n    - id: b\n      note: n\n  score: 0\nend: true";
    assert_eq!(loose(lost), ["there is no <item> in it"]);
    // Code in a text does not end the reply.
    let code = "```yaml\n- id: a\n  note: |\n    ```\n    x\n    ```\n  score: 0\n- id: b\n  note: null\n```";
    assert_eq!(loose(code), [r#"["```\nx\n```\n",0]"#, "[null,null]"]);
}

/// The reply about these labels, in a form of our own choice.
fn reply(format: Format, labels: &[String]) -> (Vec<String>, String) {
    let ids: Vec<String> = (0..labels.len()).map(|n| format!("id{n}x")).collect();
    let each = |show: &dyn Fn(&str, &str) -> String| -> String {
        ids.iter().zip(labels).map(|(id, label)| show(id, label)).collect()
    };
    let quoted = |label: &str| Value::from(label).to_string();
    let text = match format {
        Format::Json => {
            let items =
                each(&|id, label| format!("{{\"id\":\"{id}\",\"label\":{}}},", quoted(label)));
            format!("{{\"items\":[{}]}}", items.trim_end_matches(','))
        }
        Format::Xml => {
            let escape = |label: &str| label.replace('&', "&amp;").replace('<', "&lt;");
            each(&|id, label| {
                format!("<item id=\"{id}\"><label>{}</label></item>\n", escape(label))
            })
        }
        Format::Yaml => {
            let items = each(&|id, label| format!("  - id: {id}\n    label: {}\n", quoted(label)));
            format!("items:\n{items}end: true\n")
        }
    };
    (ids, text)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Wherever a reply is cut, every answer that is left is whole.
    #[test]
    fn a_cut_reply_gives_whole_answers_or_none(
        labels in proptest::collection::vec("[ -~é]{1,12}", 1..6),
        cut in 0.0_f64..1.0,
        asked in 0_usize..3,
        written in 0_usize..3,
    ) {
        let labels: Vec<String> = labels.iter().map(|label| format!("x{}x", label.trim())).collect();
        let (ids, text) = reply(Format::ALL[written], &labels);
        let mut end = (cut * text.len() as f64) as usize;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let task = Task::new("x", vec![Field::new("label", FieldType::String)]);
        let whole = align(&text, Format::ALL[asked], &task, &ids).unwrap();
        for (answer, label) in whole.answers.iter().zip(&labels) {
            prop_assert_eq!(answer, &Ok(vec![json!(label)]), "{}", text);
        }
        if let Ok(aligned) = align(&text[..end], Format::ALL[asked], &task, &ids) {
            for (answer, label) in aligned.answers.iter().zip(&labels) {
                prop_assert!(answer.is_err() || *answer == Ok(vec![json!(label)]), "{}", &text[..end]);
            }
        }
    }

    /// Whatever a reply is, reading it ends.
    #[test]
    fn any_text_can_be_read(text in "([{}\\[\\]\":,<>/&;\\-#a-z0-9\n ]|id|item|end: true|```){0,200}") {
        let ids = ["ab".to_owned()];
        for format in Format::ALL {
            let _ = align(&text, format, &task(), &ids);
        }
    }
}
