use super::layout::LayoutInput;

/// The layer of every box: below every box that leads to it, ignoring links back to an earlier box.
///
/// So linked boxes never share a layer, and a workflow without cycles reads from top to bottom.
pub(super) fn layers(sketch: &LayoutInput) -> Vec<usize> {
    let mut walk = Walk {
        onward: vec![Vec::new(); sketch.boxes.len()],
        states: vec![VisitState::Unvisited; sketch.boxes.len()],
        closed: Vec::new(),
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
    // Boxes that the top boxes do not reach start where no link leads to them; a cycle starts anywhere.
    for number in 0..entered.len() {
        if entered.get(number) == Some(&false) {
            walk.from(number);
        }
    }
    for number in 0..entered.len() {
        walk.from(number);
    }
    let mut layers = vec![0; sketch.boxes.len()];
    for number in walk.closed.iter().rev() {
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
    states: Vec<VisitState>,
    /// The boxes in the order in which the walk finished them: each after all boxes it leads forward to.
    closed: Vec<usize>,
    /// The links that do not lead back.
    forward: Vec<Vec<usize>>,
}

#[derive(Clone, Copy, PartialEq)]
enum VisitState {
    Unvisited,
    /// The box is on the path from the start to the current box.
    Open,
    Closed,
}

impl Walk {
    fn from(&mut self, start: usize) {
        let mut way: Vec<(usize, usize)> = Vec::new();
        if self.visit(start) {
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
                self.closed.push(number);
                if let Some(met) = self.states.get_mut(number) {
                    *met = VisitState::Closed;
                }
                continue;
            };
            if self.states.get(to) != Some(&VisitState::Open)
                && let Some(forward) = self.forward.get_mut(number)
            {
                forward.push(to);
            }
            if self.visit(to) {
                way.push((to, 0));
            }
        }
    }

    /// Whether the walk meets a box for the first time.
    fn visit(&mut self, number: usize) -> bool {
        match self.states.get_mut(number) {
            Some(met @ VisitState::Unvisited) => {
                *met = VisitState::Open;
                true
            }
            Some(VisitState::Open | VisitState::Closed) | None => false,
        }
    }
}
