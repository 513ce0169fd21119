//! The documents, as they are beside the source: the same texts, within the page.

use maud::{Markup, PreEscaped, html};
use pulldown_cmark::{CowStr, Event, Options, Parser, Tag, TagEnd};

use super::{Answer, Wrong, body};

/// Name in the address, what the reader gets, text.
type Document = (&'static str, &'static str, &'static str);

macro_rules! documents {
    ($($name:literal: $gives:literal),* $(,)?) => {
        [$(($name, $gives, include_str!(concat!("../../../../docs/", $name, ".md")))),*]
    };
}

/// Every document, in the order in which they are best read.
static DOCUMENTS: [Document; 14] = documents![
    "tour": "A guided tour: from the first run to the setting that decides",
    "trust": "When to believe a figure, and when not",
    "service": "A slow service, step by step",
    "glossary": "The words of tables, pages and documents",
    "comparing": "How two sides are compared, and what makes a verdict",
    "explain": "Where a request's time went, and the causes",
    "prove": "Planted causes: how often the verdicts are right",
    "observers": "What watches a workload, and what it cannot see",
    "fleet": "Many hosts, by Slurm, ssh or Kubernetes: which are slow, and in which layer",
    "web": "The web lab",
    "site": "The site lab",
    "launch": "Launching programs with little memory",
    "measuring": "The design of the measurement, each choice with its reason",
    "release": "Making a release; what is bound to an architecture",
];

/// The list of documents.
pub fn list(base: &str) -> Answer {
    let main = html! {
        h1 { "Documents" }
        dl class="documents" { @for (name, gives, text) in &DOCUMENTS {
            dt { a href={ (base) "/docs/" (name) } { (title(text)) } }
            dd { (gives) }
        } }
    };
    Ok(body("Documents", "/docs", main))
}

/// One of them.
pub fn page(base: &str, name: &str) -> Answer {
    let found = DOCUMENTS.iter().find(|(known, ..)| *known == name);
    let (.., text) =
        found.ok_or_else(|| Wrong::none("There is no such document; /docs lists them."))?;
    Ok(body(
        title(text),
        "/docs",
        html! { article class="document" { (rendered(base, text)) } },
    ))
}

/// The first heading.
fn title(text: &'static str) -> &'static str {
    text.lines()
        .find_map(|line| line.strip_prefix("# "))
        .unwrap_or("Document")
}

/// Markdown as a page shows it: links between documents lead to their pages, those to other files are text, as pictures
/// are; raw HTML is left out.
fn rendered(base: &str, text: &str) -> Markup {
    let events: Vec<Event> = Parser::new_ext(text, Options::ENABLE_TABLES).collect();
    let mut shown: Vec<Event> = Vec::with_capacity(events.len());
    let mut links = Vec::new();
    for (at, event) in events.iter().enumerate() {
        match event {
            Event::Start(Tag::Link {
                dest_url,
                link_type,
                title,
                id,
            }) => {
                let to = target(base, dest_url);
                links.push(to.is_some());
                let link = |to: String| Tag::Link {
                    dest_url: to.into(),
                    link_type: *link_type,
                    title: title.clone(),
                    id: id.clone(),
                };
                shown.extend(to.map(|to| Event::Start(link(to))));
            }
            Event::End(TagEnd::Link) => {
                if links.pop() == Some(true) {
                    shown.push(event.clone());
                }
            }
            Event::Start(Tag::Heading {
                level,
                classes,
                attrs,
                ..
            }) => {
                let id = Some(CowStr::from(slug(&heading(&events[at + 1..]))));
                shown.push(Event::Start(Tag::Heading {
                    level: *level,
                    id,
                    classes: classes.clone(),
                    attrs: attrs.clone(),
                }));
            }
            Event::Start(Tag::Image { .. } | Tag::HtmlBlock)
            | Event::End(TagEnd::Image | TagEnd::HtmlBlock) => {}
            Event::Html(_) | Event::InlineHtml(_) => {}
            other => shown.push(other.clone()),
        }
    }
    let mut out = String::new();
    pulldown_cmark::html::push_html(&mut out, shown.into_iter());
    PreEscaped(within_the_screen(&out))
}

/// Where a link leads from here: to another document, or to the world; nothing for a file that is not here.
fn target(base: &str, to: &str) -> Option<String> {
    if to.starts_with("https://") || to.starts_with('#') {
        return Some(to.to_owned());
    }
    let (file, place) = to
        .split_once('#')
        .map_or((to, String::new()), |(file, place)| {
            (file, format!("#{place}"))
        });
    let name = file.strip_suffix(".md")?;
    let name = name.strip_prefix("docs/").unwrap_or(name);
    DOCUMENTS
        .iter()
        .any(|(known, ..)| *known == name)
        .then(|| format!("{base}/docs/{name}{place}"))
}

/// The words of a heading, from the events after its beginning.
fn heading(events: &[Event]) -> String {
    let words = events
        .iter()
        .take_while(|e| !matches!(e, Event::End(TagEnd::Heading(_))));
    words
        .filter_map(|e| {
            if let Event::Text(text) | Event::Code(text) = e {
                Some(text.as_ref())
            } else {
                None
            }
        })
        .collect()
}

/// The name of a heading in an address, as code hosts make it.
fn slug(words: &str) -> String {
    let kept = words
        .to_lowercase()
        .chars()
        .filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c))
        .collect::<String>();
    kept.replace(' ', "-")
}

/// Wide tables and blocks of code scroll by themselves, also by the keyboard, so that the page does not.
fn within_the_screen(text: &str) -> String {
    let mut parts = text.split("<table>");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for (n, part) in parts.enumerate() {
        out.push_str(&format!(
            "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"Table {}\"><table>",
            n + 1
        ));
        out.push_str(&part.replacen("</table>", "</table></div>", 1));
    }
    out.replace("<pre>", "<pre tabindex=\"0\">")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        rendered("/t", text).into_string()
    }

    #[test]
    fn every_document_has_a_title_and_is_rendered_whole() {
        for (name, _, text) in &DOCUMENTS {
            assert_ne!(title(text), "Document", "{name}");
            let page = shown(text);
            assert!(
                page.contains("<h1 id=")
                    && !page.contains("href=\"docs/")
                    && !page.contains(".md\""),
                "{name}"
            );
            assert_eq!(
                page.matches("<table>").count(),
                page.matches("class=\"scroll\"").count(),
                "{name}"
            );
            assert_eq!(
                page.matches("<a ").count(),
                page.matches("</a>").count(),
                "{name}"
            );
        }
    }

    #[test]
    fn every_file_of_docs_is_a_document() {
        let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
        for file in std::fs::read_dir(dir)
            .unwrap()
            .flatten()
            .map(|e| e.path())
            .filter(|p| p.extension().is_some_and(|e| e == "md"))
        {
            let name = file.file_stem().unwrap().to_str().unwrap().to_owned();
            assert!(
                DOCUMENTS.iter().any(|(known, ..)| *known == name),
                "docs/{name}.md"
            );
        }
    }

    #[test]
    fn links_lead_to_documents_and_nothing_raw_gets_through() {
        assert!(shown("[a](trust.md#when)").contains("<a href=\"/t/docs/trust#when\">a</a>"));
        assert!(
            shown("[a](https://example.org/)").contains("<a href=\"https://example.org/\">a</a>")
        );
        for text in [
            "[a](../bench/RESULTS.md)",
            "[a](javascript:alert(1))",
            "[a](/etc/passwd)",
            "[a](nothing.md)",
        ] {
            let page = shown(text);
            assert!(!page.contains("<a") && page.contains('a'), "{page}");
        }
        let page =
            shown("<script>alert(1)</script>\n\nb <img src=x onerror=y> `<i>` ![words](x.png)\n");
        assert!(
            !page.contains("<script")
                && !page.contains("<img")
                && page.contains("&lt;i&gt;")
                && page.contains("words"),
            "{page}"
        );
    }

    #[test]
    fn headings_can_be_linked_to_as_on_code_hosts() {
        assert_eq!(
            slug("5. Would it be faster without that neighbour?"),
            "5-would-it-be-faster-without-that-neighbour"
        );
        assert!(shown("## The `--hold` way").contains("<h2 id=\"the---hold-way\">"));
    }
}
