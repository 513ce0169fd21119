use super::*;
use proptest::prelude::*;

/// Feeds pieces until the connection ends, and lists what came out.
fn read(pieces: &[&[u8]], closed: bool) -> Result<Vec<Answer>, BadAnswer> {
    let mut parser = Parser::default();
    let mut cache = HeadCache::default();
    let mut answers = Vec::new();
    for piece in pieces {
        let mut rest = *piece;
        while !rest.is_empty() {
            match parser.feed(rest, &mut cache)? {
                Progress::More => break,
                Progress::Done(answer, used) => {
                    answers.push(answer);
                    rest = &rest[used..];
                }
            }
        }
    }
    if closed {
        match parser.close() {
            Err(BadAnswer::Empty) if !answers.is_empty() => {}
            other => answers.push(other?),
        }
    }
    Ok(answers)
}

fn one(text: &str) -> Result<Answer, BadAnswer> {
    let answers = read(&[text.as_bytes()], true)?;
    assert_eq!(answers.len(), 1, "{answers:?}");
    Ok(answers[0])
}

#[test]
fn a_length_ends_the_answer_and_the_connection_lives() {
    let a = one("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello").unwrap();
    assert_eq!(
        a,
        Answer {
            status: 200,
            body: 5,
            keep_alive: true
        }
    );
    let a = one("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: Close\r\n\r\nhello").unwrap();
    assert!(!a.keep_alive);
    let a = one("HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n").unwrap();
    assert_eq!(
        a,
        Answer {
            status: 404,
            body: 0,
            keep_alive: true
        }
    );
}

#[test]
fn an_answer_of_http_1_0_closes_unless_it_says_that_it_does_not() {
    assert!(
        !one("HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok")
            .unwrap()
            .keep_alive
    );
    assert!(
        one("HTTP/1.0 200 OK\r\nContent-Length: 2\r\nConnection: keep-alive\r\n\r\nok")
            .unwrap()
            .keep_alive
    );
    assert_eq!(
        one("HTTP/1.0 200 OK\r\n\r\nall of this").unwrap(),
        Answer {
            status: 200,
            body: 11,
            keep_alive: false
        }
    );
}

#[test]
fn an_answer_without_length_lasts_until_the_connection_closes() {
    assert_eq!(
        one("HTTP/1.1 200 OK\r\n\r\nabc").unwrap(),
        Answer {
            status: 200,
            body: 3,
            keep_alive: false
        }
    );
    assert_eq!(
        one("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nabc")
            .unwrap()
            .body,
        3
    );
}

#[test]
fn chunks_are_joined_and_extensions_and_trailers_passed_over() {
    let text = "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, Chunked\r\n\r\n5;name=\"v\"\r\nhello\r\n0A\r\n\
        0123456789\r\n0\r\nX: y\r\n\r\n";
    assert_eq!(
        one(text).unwrap(),
        Answer {
            status: 200,
            body: 15,
            keep_alive: true
        }
    );
    let both = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n";
    assert_eq!(
        one(both).unwrap(),
        Answer {
            status: 200,
            body: 1,
            keep_alive: false
        }
    );
}

#[test]
fn interim_answers_are_passed_over_and_some_have_no_body() {
    let text = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\n\
        Content-Length: 1\r\n\r\nx";
    assert_eq!(
        one(text).unwrap(),
        Answer {
            status: 200,
            body: 1,
            keep_alive: true
        }
    );
    assert_eq!(
        one("HTTP/1.1 204 No Content\r\n\r\n").unwrap(),
        Answer {
            status: 204,
            body: 0,
            keep_alive: true
        }
    );
    assert_eq!(
        one("HTTP/1.1 304 Not Modified\r\nContent-Length: 10\r\n\r\n")
            .unwrap()
            .body,
        0
    );
}

#[test]
fn what_is_not_an_answer_is_an_error() {
    assert_eq!(
        one("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort"),
        Err(BadAnswer::Truncated)
    );
    assert_eq!(
        one("HTTP/1.1 200 OK\r\nContent-Le"),
        Err(BadAnswer::Truncated)
    );
    assert_eq!(
        one("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"),
        Err(BadAnswer::Truncated)
    );
    assert_eq!(one(""), Err(BadAnswer::Empty));
    assert_eq!(
        one("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx"),
        Err(BadAnswer::Length)
    );
    for bad in ["-1", "+1", "1x", "", "18446744073709551616", "1, 2"] {
        assert_eq!(
            one(&format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {bad}\r\n\r\nx"
            )),
            Err(BadAnswer::Length),
            "{bad}"
        );
    }
    for bad in [
        "x\r\n",
        "\r\n",
        "-5\r\n",
        "10000000000000000\r\n",
        "1\r\nab\r\n",
    ] {
        let text = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{bad}");
        assert_eq!(one(&text), Err(BadAnswer::Chunk), "{bad:?}");
    }
    for bad in [
        "SSH-2.0-OpenSSH\r\n",
        "HTTP/2 200\r\n\r\n",
        "HTTP/1.1 20 x\r\n\r\n",
        "\u{0}\u{0}",
    ] {
        assert!(matches!(one(bad), Err(BadAnswer::Head(_))), "{bad:?}");
    }
}

#[test]
fn what_has_no_end_is_given_up() {
    let field = format!("X: {}\r\n", "y".repeat(1000));
    let mut text = "HTTP/1.1 200 OK\r\n".to_owned();
    (0..100).for_each(|_| text.push_str(&field));
    assert_eq!(one(&text), Err(BadAnswer::TooLong));
    let chunk = format!(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;{}",
        "x".repeat(10_000)
    );
    assert_eq!(one(&chunk), Err(BadAnswer::TooLong));
}

/// A valid answer in any framing, and what it should be read as.
fn answer() -> impl Strategy<Value = (Vec<u8>, Answer)> {
    let body = proptest::collection::vec(any::<u8>(), 0..200);
    (
        200u16..600,
        body,
        any::<bool>(),
        proptest::collection::vec(1usize..50, 0..5),
        any::<bool>(),
    )
        .prop_map(|(status, body, chunked, cuts, interim)| {
            let mut bytes = if interim {
                b"HTTP/1.1 100 Continue\r\n\r\n".to_vec()
            } else {
                Vec::new()
            };
            bytes.extend_from_slice(
                format!("HTTP/1.1 {status} Some Reason\r\nServer: x\r\n").as_bytes(),
            );
            let none = matches!(status, 204 | 304);
            if chunked && !none {
                bytes.extend_from_slice(b"Transfer-Encoding: chunked\r\n\r\n");
                let mut rest = &body[..];
                for cut in cuts.into_iter().chain([usize::MAX]) {
                    let (chunk, after) = rest.split_at(cut.min(rest.len()));
                    if !chunk.is_empty() {
                        bytes.extend_from_slice(format!("{:X}\r\n", chunk.len()).as_bytes());
                        bytes.extend_from_slice(chunk);
                        bytes.extend_from_slice(b"\r\n");
                    }
                    rest = after;
                }
                bytes.extend_from_slice(b"0\r\nTrailer: t\r\n\r\n");
            } else {
                bytes.extend_from_slice(
                    format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes(),
                );
                bytes.extend_from_slice(if none { &[] } else { &body });
            }
            (
                bytes,
                Answer {
                    status,
                    body: if none { 0 } else { body.len() as u64 },
                    keep_alive: true,
                },
            )
        })
}

proptest! {
    #[test]
    fn answers_are_read_the_same_however_they_are_cut(
        answers in proptest::collection::vec(answer(), 1..5),
        sizes in proptest::collection::vec(1usize..40, 0..200),
    ) {
        let stream: Vec<u8> = answers.iter().flat_map(|(bytes, _)| bytes.clone()).collect();
        let mut pieces = Vec::new();
        let mut rest = &stream[..];
        for size in sizes {
            let (piece, after) = rest.split_at(size.min(rest.len()));
            pieces.push(piece);
            rest = after;
        }
        pieces.push(rest);
        let expected: Vec<Answer> = answers.iter().map(|(_, a)| *a).collect();
        prop_assert_eq!(read(&pieces, true).unwrap(), expected);
    }

    #[test]
    fn any_bytes_give_the_same_in_one_piece_or_in_many(
        bytes in proptest::collection::vec(any::<u8>(), 0..300),
        head in prop_oneof![
            Just(&b""[..]),
            Just(&b"HTTP/1.1 200 OK\r\n"[..]),
            Just(&b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"[..]),
        ],
    ) {
        let stream = [head, &bytes].concat();
        let whole = read(&[&stream], true);
        let single: Vec<&[u8]> = stream.chunks(1).collect();
        let cut = read(&single, true);
        prop_assert_eq!(whole.is_ok(), cut.is_ok(), "{:?} {:?}", whole, cut);
        if let (Ok(a), Ok(b)) = (whole, cut) {
            prop_assert_eq!(a, b);
        }
    }
}
