//! An icicle: chains as rows of boxes from the top down, each as wide as its share of the whole, those that begin alike
//! below one box.

use fingerpost_record::Layer;
use maud::{Markup, html};

use super::cells::layer_class;
use super::percent;

/// Height of a row of boxes.
const ROW: f64 = 22.0;
/// How wide the picture is at least on a wide screen, on a narrower one and on paper, and on a phone, in pixels; with
/// the class of what is shown there.
const WIDTHS: [(f64, &str); 3] = [(900.0, " wide"), (640.0, " paper"), (290.0, " phone")];
/// A letter's width, in the middle of a text's.
const LETTER: f64 = 7.0;
/// Fewer letters of a name than these say nothing.
const FEWEST: usize = 6;
/// A box narrower than this many per cent cannot be seen.
const SEEN: f64 = 0.1;
/// Rows that are drawn: a longer chain ends in its last.
const DEEPEST: usize = 18;
/// See [`DEEPEST`].
const DEEPEST_STACK: usize = 48;

/// A chain of names from the top down, with its share of the whole. Texts are clean; they are escaped here.
#[derive(Clone, Debug)]
pub struct Branch {
    /// The names. The last is what the time went to.
    pub names: Vec<String>,
    /// The layer of the last.
    pub layer: Layer,
    /// More about the last, for its tooltip.
    pub note: String,
    /// The share, 0 to 1.
    pub share: f64,
}

/// One box.
#[derive(Debug)]
struct Node {
    name: String,
    note: String,
    /// The layer of what time went to; links of a chain have none.
    layer: Option<Layer>,
    share: f64,
    below: Vec<Node>,
}

/// The picture, with a title and a description for who cannot see it.
pub fn icicle(title: &str, description: &str, branches: &[Branch]) -> Markup {
    draw(title, description, branches, DEEPEST)
}

/// The same of stacks, which are deeper.
pub fn flame_graph(title: &str, description: &str, branches: &[Branch]) -> Markup {
    draw(title, description, branches, DEEPEST_STACK)
}

fn draw(title: &str, description: &str, branches: &[Branch], deepest: usize) -> Markup {
    let mut roots = Vec::new();
    for branch in branches
        .iter()
        .filter(|b| b.share > 0.0 && b.share.is_finite())
    {
        insert(
            &mut roots,
            &branch.names[..branch.names.len().min(deepest)],
            branch,
        );
    }
    sort(&mut roots);
    let mut boxes = Vec::new();
    let whole = roots.iter().map(|n| n.share).sum::<f64>().max(1.0);
    place(&roots, 0.0, 0, whole, &mut boxes);
    let rows = boxes.iter().map(|b| b.row + 1).max().unwrap_or(0);
    html! {
        svg class="icicle" width="100%" height=(ROW * rows as f64) role="img" xmlns="http://www.w3.org/2000/svg" {
            title { (title) }
            desc { (description) }
            @for b in &boxes {
                // A picture of its own cuts a word off where its box ends.
                svg x=(percent(b.from)) y=(ROW * b.row as f64) width=(percent(b.width)) height=(ROW) {
                    rect class={ "piece " (b.node.layer.map_or("link", layer_class)) } width="100%" height=(ROW) {
                        title { (tooltip(b.node)) }
                    }
                    @for (word, at) in labels(b) {
                        text class={ (if b.node.layer.is_some() { "on-layer" } else { "on-link" }) (at) } x="5" y="15" {
                            (word)
                        }
                    }
                }
            }
        }
    }
}

/// How many letters have room in a box of so many per cent of a picture.
fn letters(width: f64, picture: f64) -> usize {
    ((width / 100.0 * picture - 8.0).max(0.0) / LETTER) as usize
}

/// What stands in a box, each with the classes of the pictures in which it does.
fn labels(b: &Placed) -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = Vec::new();
    for (picture, class) in WIDTHS {
        let Some(word) = word(&b.node.name, letters(b.width, picture)) else {
            continue;
        };
        match all.last_mut().filter(|(before, _)| *before == word) {
            Some((_, classes)) => classes.push_str(class),
            None => all.push((word, class.to_owned())),
        }
    }
    all
}

/// A name where it has room, its beginning where that says something, else nothing.
fn word(name: &str, room: usize) -> Option<String> {
    let long = name.chars().count();
    if long <= room {
        return Some(name.to_owned());
    }
    (room > FEWEST).then(|| name.chars().take(room - 1).chain(['…']).collect())
}

fn tooltip(node: &Node) -> String {
    let note = if node.note.is_empty() {
        String::new()
    } else {
        format!(" – {}", node.note)
    };
    format!("{}: {:.1} %{note}", node.name, node.share * 100.0)
}

fn insert(nodes: &mut Vec<Node>, names: &[String], branch: &Branch) {
    let Some((name, rest)) = names.split_first() else {
        return;
    };
    // What time went to has a box of its own: the same name as a link of a chain is something else.
    let layer = rest.is_empty().then_some(branch.layer);
    let at = nodes.iter().position(|n| {
        n.name == *name && n.layer == layer && (layer.is_none() || n.note == branch.note)
    });
    let at = at.unwrap_or_else(|| {
        let note = if layer.is_some() {
            branch.note.clone()
        } else {
            String::new()
        };
        nodes.push(Node {
            name: name.clone(),
            note,
            layer,
            share: 0.0,
            below: Vec::new(),
        });
        nodes.len() - 1
    });
    nodes[at].share += branch.share;
    insert(&mut nodes[at].below, rest, branch);
}

fn sort(nodes: &mut [Node]) {
    nodes.sort_by(|a, b| b.share.total_cmp(&a.share));
    nodes.iter_mut().for_each(|n| sort(&mut n.below));
}

/// A box at its place, in per cent of the width.
struct Placed<'a> {
    node: &'a Node,
    from: f64,
    width: f64,
    row: usize,
}

fn place<'a>(
    nodes: &'a [Node],
    mut from: f64,
    row: usize,
    whole: f64,
    boxes: &mut Vec<Placed<'a>>,
) {
    for node in nodes {
        let width = node.share / whole * 100.0;
        if width >= SEEN {
            boxes.push(Placed {
                node,
                from,
                width,
                row,
            });
            place(&node.below, from, row + 1, whole, boxes);
        }
        from += width;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn branch(names: &[&str], share: f64) -> Branch {
        Branch {
            names: names.iter().map(|&n| n.to_owned()).collect(),
            layer: Layer::Storage,
            note: String::new(),
            share,
        }
    }

    #[test]
    fn chains_that_begin_alike_lie_below_one_box_as_wide_as_both() {
        let text = icicle(
            "t",
            "d",
            &[
                branch(&["lock", "disk"], 0.25),
                branch(&["lock", "work"], 0.25),
                branch(&["user"], 0.5),
            ],
        )
        .into_string();
        assert_eq!(text.matches("<rect").count(), 4, "{text}");
        assert!(
            text.contains(r#"width="50.00%""#) && text.contains(r#"y="22""#),
            "{text}"
        );
        assert!(text.contains("<title>t</title>") && text.contains("<desc>d</desc>"));
    }

    #[test]
    fn a_box_has_the_words_that_have_room() {
        assert_eq!(word("queue", 5).as_deref(), Some("queue"));
        assert_eq!(word("waiting for a CPU", 9).as_deref(), Some("waiting …"));
        assert_eq!(word("waiting for a CPU", 6), None);
        let text = icicle(
            "t",
            "d",
            &[
                branch(&["waiting for a lock"], 0.3),
                branch(&["lock"], 0.1),
                branch(&["disk"], 0.6),
            ],
        )
        .into_string();
        assert!(
            text.contains(r#"class="on-layer wide paper" x="5" y="15">waiting for a lock<"#),
            "{text}"
        );
        assert!(
            text.contains(r#"class="on-layer phone" x="5" y="15">waiting fo…<"#),
            "{text}"
        );
        assert!(
            text.contains(r#"class="on-layer wide paper phone" x="5" y="15">disk<"#),
            "{text}"
        );
    }

    #[test]
    fn what_a_hostile_run_holds_is_drawn_within_the_picture() {
        let deep = vec!["x"; 500];
        let text = icicle(
            "t",
            "d",
            &[
                branch(&deep, 1.0),
                branch(&["nan"], f64::NAN),
                branch(&["over"], 5.0),
                branch(&["less"], -1.0),
                branch(&[], 1.0),
            ],
        );
        let text = text.into_string();
        assert!(
            !text.contains("NaN")
                && !text.contains("-1")
                && text.matches("<rect").count() <= DEEPEST + 1,
            "{text}"
        );
    }
}
