use fingerpost_record::{Run, fixture};

use super::*;

#[test]
fn the_page_holds_every_group_and_row() {
    let run = fixture::run();
    let page = report(&run, &[], None);
    for group in View::of(&run, &[]).groups {
        assert!(
            page.contains(&format!("id=\"{}\"", group.table.key))
                && page.contains(&format!("href=\"#{}\"", group.table.key)),
            "{}",
            group.table.key
        );
        for row in group.shown().filter(|r| r.figure.is_some()) {
            assert!(
                page.contains(&row.figure.unwrap().value()),
                "{}",
                row.name()
            );
        }
    }
    assert!(page.contains("fingerpost run --profile quick --seed 42"));
    assert!(page.contains("killed by signal 9"));
}

#[test]
fn the_page_needs_nothing_else() {
    let page = report(&fixture::run(), &[], None);
    for outside in [
        "<script", "<link", "<img", "<iframe", "@import", "url(", "https://",
    ] {
        assert!(!page.contains(outside), "{outside}");
    }
    // The one address is the name of SVG's namespace, which is not fetched.
    assert_eq!(
        page.replace("http://www.w3.org/2000/svg", "")
            .matches("http://")
            .count(),
        0
    );
}

#[test]
fn every_element_is_closed_in_order() {
    let page = report(&fixture::run(), &[], None);
    let mut open: Vec<&str> = Vec::new();
    for piece in page.split('<').skip(1) {
        let tag = piece.split(['>', ' ', '\n']).next().unwrap();
        match tag.strip_prefix('/') {
            Some(name) => assert_eq!(open.pop(), Some(name)),
            None if tag.starts_with('!') || matches!(tag, "meta" | "wbr") => {}
            None => open.push(tag),
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

#[test]
fn a_hostile_run_stays_text() {
    let mut run: Run = fixture::run();
    let evil = "</style><script>alert(1)</script>\u{1b}[2J\"' onload=x";
    run.host.hostname = evil.into();
    run.host.doubts = vec![evil.into()];
    run.host.mitigations.insert(evil.into(), evil.into());
    run.command = vec!["fingerpost".into(), evil.into()];
    run.measurements[0].probe = evil.into();
    run.measurements[0].params = fingerpost_record::Params::new().with(evil, evil);
    let page = report(&run, &[], None);
    assert!(!page.contains("<script") && !page.contains('\u{1b}'));
    assert_eq!(page.matches("</style>").count(), 1);
}
