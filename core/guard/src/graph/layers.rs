use super::layout::Sketch;

/// The layer of every box: below every box that leads to it, links back to an earlier box aside.
///
/// So linked boxes never share a layer, and a workflow without circles reads from top to bottom.
pub(super) fn layers(sketch: &Sketch) -> Vec<usize> {
    let mut walk = Walk {
        onward: vec![Vec::new(); sketch.boxes.len()],
        met: vec![Met::Not; sketch.boxes.len()],
        left: Vec::new(),
        forward: vec![Vec::new(); sketch.boxes.len()],
    };
    let mut entered = vec![false; sketch.boxes.len()];
    for link in &sketch.links {
        if let Some(onward) = walk.onward.get_mut(link.from) {
            onward.push(link.to);
        }
        if let Some(entered) = entered.get_mut(link.to) {
            *entered = true;
        }
    }
    for top in &sketch.tops {
        walk.from(*top);
    }
    // What the top does not lead to begins where nothing leads, and a circle begins anywhere.
    for number in 0..entered.len() {
        if entered.get(number) == Some(&false) {
            walk.from(number);
        }
    }
    for number in 0..entered.len() {
        walk.from(number);
    }
    let mut layers = vec![0; sketch.boxes.len()];
    for number in walk.left.iter().rev() {
        let layer = layers.get(*number).map_or(0, |layer| layer + 1);
        for to in walk.forward.get(*number).into_iter().flatten() {
            if let Some(below) = layers.get_mut(*to) {
                *below = layer.max(*below);
            }
        }
    }
    layers
}

struct Walk {
    onward: Vec<Vec<usize>>,
    met: Vec<Met>,
    /// The boxes in the order they were left for good: each after all it leads forward to.
    left: Vec<usize>,
    /// The links that do not lead back.
    forward: Vec<Vec<usize>>,
}

#[derive(Clone, Copy, PartialEq)]
enum Met {
    Not,
    /// It is on the way from the start to where the walk is.
    OnTheWay,
    Left,
}

impl Walk {
    fn from(&mut self, start: usize) {
        let mut way: Vec<(usize, usize)> = Vec::new();
        if self.meet(start) {
            way.push((start, 0));
        }
        while let Some((number, next)) = way.last_mut() {
            let link = self
                .onward
                .get(*number)
                .and_then(|onward| onward.get(*next));
            let (number, link) = (*number, link.copied());
            *next += 1;
            let Some(to) = link else {
                way.pop();
                self.left.push(number);
                if let Some(met) = self.met.get_mut(number) {
                    *met = Met::Left;
                }
                continue;
            };
            if self.met.get(to) != Some(&Met::OnTheWay)
                && let Some(forward) = self.forward.get_mut(number)
            {
                forward.push(to);
            }
            if self.meet(to) {
                way.push((to, 0));
            }
        }
    }

    /// Whether a box is met for the first time.
    fn meet(&mut self, number: usize) -> bool {
        match self.met.get_mut(number) {
            Some(met @ Met::Not) => {
                *met = Met::OnTheWay;
                true
            }
            Some(Met::OnTheWay | Met::Left) | None => false,
        }
    }
}
