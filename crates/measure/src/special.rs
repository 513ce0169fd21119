//! The few special functions that intervals need: normal and Student quantiles, and the incomplete beta function.

/// ln Γ(x) for x > 0 (Lanczos, g = 7, nine terms; 15 digits).
fn ln_gamma(x: f64) -> f64 {
    const C: [f64; 9] = [
        0.999_999_999_999_809_9,
        676.520_368_121_885_1,
        -1_259.139_216_722_402_8,
        771.323_428_777_653_1,
        -176.615_029_162_140_6,
        12.507_343_278_686_905,
        -0.138_571_095_265_720_12,
        9.984_369_578_019_572e-6,
        1.505_632_735_149_311_6e-7,
    ];
    let x = x - 1.0;
    let t = x + 7.5;
    let sum: f64 = C[0] + (1..9).map(|i| C[i] / (x + i as f64)).sum::<f64>();
    0.5 * (2.0 * std::f64::consts::PI).ln() + (x + 0.5) * t.ln() - t + sum.ln()
}

/// The regularised incomplete beta function I_x(a, b), by Lentz's continued fraction.
pub fn beta_inc(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    let front =
        (ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (1.0 - x).ln()).exp();
    // The fraction converges fast only below the mean; above it the symmetry is used.
    if x < (a + 1.0) / (a + b + 2.0) {
        front * continued(a, b, x) / a
    } else {
        1.0 - front * continued(b, a, 1.0 - x) / b
    }
}

fn continued(a: f64, b: f64, x: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let away = |v: f64| if v.abs() < TINY { TINY } else { v };
    let mut c = 1.0;
    let mut d = 1.0 / away(1.0 - (a + b) * x / (a + 1.0));
    let mut h = d;
    for m in 1..500 {
        let m = f64::from(m);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        d = 1.0 / away(1.0 + even * d);
        c = away(1.0 + even / c);
        h *= d * c;
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        d = 1.0 / away(1.0 + odd * d);
        c = away(1.0 + odd / c);
        h *= d * c;
        if (d * c - 1.0).abs() < 1e-14 {
            break;
        }
    }
    h
}

/// P(T > t) of Student's distribution with `df` degrees of freedom.
pub fn t_upper(t: f64, df: f64) -> f64 {
    let tail = 0.5 * beta_inc(df / 2.0, 0.5, df / (df + t * t));
    if t >= 0.0 { tail } else { 1.0 - tail }
}

/// The t that a two-sided interval of this confidence needs with `df` degrees of freedom.
pub fn t_two_sided(confidence: f64, df: f64) -> f64 {
    let tail = (1.0 - confidence) / 2.0;
    let (below, above) = about(tail, df).unwrap_or((f64::NEG_INFINITY, f64::INFINITY));
    let (mut low, mut high) = (0.0, 1e3);
    for _ in 0..60 {
        let mid = (low + high) / 2.0;
        // Outside of what is known already nothing need be computed, which is most of a bisection and of a comparison
        // of a thousand rows.
        let has_more = mid <= below || (mid < above && t_upper(mid, df) > tail);
        if has_more { low = mid } else { high = mid }
    }
    (low + high) / 2.0
}

/// Two values close together, below the first of which Student's distribution has more than this share above and from
/// the second on not, by Newton's steps; nothing where these come to no such place.
fn about(tail: f64, df: f64) -> Option<(f64, f64)> {
    let of_density = (ln_gamma((df + 1.0) / 2.0) - ln_gamma(df / 2.0)).exp()
        / (df * std::f64::consts::PI).sqrt();
    let density = |t: f64| of_density * (-(df + 1.0) / 2.0 * (t * t / df).ln_1p()).exp();
    let mut t = 1.0;
    for _ in 0..30 {
        let step = (t_upper(t, df) - tail) / density(t);
        t += step;
        if !(0.0..1e3).contains(&t) {
            return None;
        }
        if step.abs() < NEAR * t {
            break;
        }
    }
    let (below, above) = (t - NEAR * t, t + NEAR * t);
    (t_upper(below, df) > tail && t_upper(above, df) <= tail).then_some((below, above))
}

/// How near to a quantile Newton's steps come, as a share of it: a hundred times what the tail's own rounding makes of
/// it.
const NEAR: f64 = 1e-11;

/// The z that a two-sided normal interval of this confidence needs.
pub fn z_two_sided(confidence: f64) -> f64 {
    // Nearly every record says 0.95, and a comparison asks this for each row of each run.
    if confidence == 0.95 {
        1.959_963_985
    } else {
        z_above((1.0 - confidence.clamp(0.01, 0.999_999)) / 2.0)
    }
}

/// The z above which a normal distribution has this share, at most a half: Abramowitz and Stegun 26.2.23, which is
/// right to 4.5e-4, and three of Newton's steps, each of which doubles the digits.
fn z_above(tail: f64) -> f64 {
    let t = (-2.0 * tail.ln()).sqrt();
    let first = t
        - (2.515517 + t * (0.802853 + t * 0.010328))
            / (1.0 + t * (1.432788 + t * (0.189269 + t * 0.001308)));
    let density = |z: f64| (-z * z / 2.0).exp() / std::f64::consts::TAU.sqrt();
    (0..3).fold(first, |z, _| z + (t_upper(z, NORMAL) - tail) / density(z))
}

/// Degrees of freedom at which Student's distribution is the normal one.
const NORMAL: f64 = 1e6;

/// P(F > f) of Fisher's distribution with `a` and `b` degrees of freedom.
pub fn f_upper(f: f64, a: f64, b: f64) -> f64 {
    beta_inc(b / 2.0, a / 2.0, b / (b + a * f.max(0.0)))
}

/// Upwards by the recurrence, to where the asymptotic series has 12 digits: that place, and the sum of the steps.
fn upwards(mut x: f64, step: impl Fn(f64) -> f64) -> (f64, f64) {
    let mut sum = 0.0;
    while x < 8.0 {
        sum += step(x);
        x += 1.0;
    }
    (x, sum)
}

/// ψ(x), the derivative of ln Γ, for x > 0.
pub fn digamma(x: f64) -> f64 {
    let (x, sum) = upwards(x, |x| -1.0 / x);
    let y = 1.0 / (x * x);
    sum + x.ln()
        - 0.5 / x
        - y * (1.0 / 12.0 - y * (1.0 / 120.0 - y * (1.0 / 252.0 - y * (1.0 / 240.0 - y / 132.0))))
}

/// ψ′(x), for x > 0.
pub fn trigamma(x: f64) -> f64 {
    let (x, sum) = upwards(x, |x| 1.0 / (x * x));
    let y = 1.0 / (x * x);
    sum + 1.0 / x + y / 2.0 + y / x * (1.0 / 6.0 - y * (1.0 / 30.0 - y * (1.0 / 42.0 - y / 30.0)))
}

/// The x > 0 with ψ′(x) = y, for y > 0 (Newton's method on 1/ψ′, as in the appendix of Smyth 2004).
pub fn trigamma_inverse(y: f64) -> f64 {
    // ψ′(x) is about 1/x far out and 1/x² near zero, and lies above both.
    if y > 1e7 {
        return 1.0 / y.sqrt();
    }
    if y < 1e-6 {
        return 1.0 / y;
    }
    let mut x = 0.5 + 1.0 / y;
    for _ in 0..50 {
        let t = trigamma(x);
        let step = t * (1.0 - t / y) / tetragamma(x);
        x += step;
        if -step / x < 1e-10 {
            break;
        }
    }
    x
}

/// ψ″(x), for x > 0.
fn tetragamma(x: f64) -> f64 {
    let (x, sum) = upwards(x, |x| -2.0 / (x * x * x));
    let y = 1.0 / (x * x);
    sum - y - y / x - y * y * (0.5 - y * (1.0 / 6.0 - y * (1.0 / 6.0 - y * 0.3)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: f64, b: f64, tolerance: f64) {
        assert!((a - b).abs() < tolerance, "{a} is not {b}");
    }

    #[test]
    fn a_quantile_is_that_of_bisection_alone_to_the_last_bit() {
        let bisected = |confidence: f64, df: f64| {
            let tail = (1.0 - confidence) / 2.0;
            let (mut low, mut high) = (0.0, 1e3);
            for _ in 0..60 {
                let mid = (low + high) / 2.0;
                if t_upper(mid, df) > tail {
                    low = mid
                } else {
                    high = mid
                }
            }
            (low + high) / 2.0
        };
        let mut narrowed = 0;
        let dfs = (0..600).map(|n| 1.02_f64.powi(n) * 0.5);
        for (df, confidence) in dfs.flat_map(|df| {
            [0.5, 0.9, 0.95, 0.99, 0.9999, 0.999_999].map(|confidence| (df, confidence))
        }) {
            assert_eq!(
                t_two_sided(confidence, df).to_bits(),
                bisected(confidence, df).to_bits(),
                "{confidence} {df}"
            );
            narrowed += usize::from(about((1.0 - confidence) / 2.0, df).is_some());
        }
        assert!(narrowed > 3000, "of 3600 {narrowed}");
    }

    #[test]
    fn quantiles_are_those_of_the_printed_tables() {
        near(t_two_sided(0.95, 1.0), 12.706, 1e-3);
        near(t_two_sided(0.95, 8.0), 2.306, 1e-3);
        near(t_two_sided(0.95, 11.0), 2.201, 1e-3);
        near(t_two_sided(0.99, 30.0), 2.750, 1e-3);
        near(z_two_sided(0.95), 1.95996, 1e-5);
        near(z_two_sided(0.99), 2.57583, 1e-3);
        // Newton's steps and the bisection meet.
        for confidence in [0.01, 0.2, 0.5, 0.9, 0.999, 0.999_99] {
            near(
                z_two_sided(confidence),
                t_two_sided(confidence, NORMAL),
                1e-8,
            );
        }
    }

    #[test]
    fn the_derivatives_of_ln_gamma_have_their_known_values() {
        let gamma = 0.577_215_664_901_532_9;
        near(digamma(1.0), -gamma, 1e-12);
        near(digamma(0.5), -gamma - 2.0 * 2.0_f64.ln(), 1e-12);
        near(trigamma(1.0), std::f64::consts::PI.powi(2) / 6.0, 1e-10);
        near(trigamma(0.5), std::f64::consts::PI.powi(2) / 2.0, 1e-10);
        near(tetragamma(1.0), -2.404_113_806_319_188_6, 1e-8);
        for x in [0.01, 0.3, 1.0, 2.5, 40.0, 1e4] {
            near(trigamma_inverse(trigamma(x)) / x, 1.0, 1e-8);
        }
    }

    #[test]
    fn f_has_the_tables_quantiles() {
        near(f_upper(4.4590, 2.0, 8.0), 0.05, 1e-4);
        near(f_upper(5.3177, 1.0, 8.0), 0.05, 1e-4);
        near(f_upper(0.0, 3.0, 8.0), 1.0, 1e-12);
    }

    #[test]
    fn the_incomplete_beta_function_has_its_known_values() {
        near(beta_inc(1.0, 1.0, 0.3), 0.3, 1e-12);
        near(beta_inc(2.0, 2.0, 0.5), 0.5, 1e-12);
        near(beta_inc(2.0, 5.0, 0.2), 0.34464, 1e-8);
        near(
            beta_inc(6.5, 6.5, 0.9) + beta_inc(6.5, 6.5, 0.1),
            1.0,
            1e-12,
        );
        near(t_upper(0.0, 5.0), 0.5, 1e-12);
        near(t_upper(-2.0, 5.0) + t_upper(2.0, 5.0), 1.0, 1e-12);
    }
}
