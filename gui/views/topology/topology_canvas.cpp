#include "gui/views/topology/topology_canvas.hpp"

#include <QApplication>
#include <QContextMenuEvent>
#include <QHelpEvent>
#include <QKeyEvent>
#include <QMenu>
#include <QMouseEvent>
#include <QToolTip>
#include <QWheelEvent>
#include <algorithm>
#include <cmath>

#include "gui/models/topology/link_users.hpp"

namespace rehearse::gui {

namespace {

constexpr double kLegend = 30;        // pixels
constexpr std::size_t kMostOpen = 2;  // open nodes at a time

}  // namespace

double shade_of_use(double use) {
  return std::sqrt(std::clamp(use, 0.0, 1.0));
}

TopologyCanvas::TopologyCanvas(QWidget* parent) : QWidget(parent) {
  setFocusPolicy(Qt::StrongFocus);
  setMouseTracking(true);
  setAttribute(Qt::WA_OpaquePaintEvent);
  setMinimumSize(260, 120);
  setAccessibleName("Topology");
  setAccessibleDescription("The cluster's nodes, switches and links; links are coloured by their use");
}

void TopologyCanvas::set_topology(std::shared_ptr<const Topology> topology) {
  if (topology == topology_) return;
  topology_ = std::move(topology);
  usage_.reset();
  busiest_.clear();
  highlighted_.clear();
  selected_.reset();
  open_groups_.clear();
  open_nodes_.clear();
  view_ = {};
  if (topology_ && topology_->hosts() == 1)
    open_nodes_.push_back({0, inside_of(topology_->cluster(), 0)});
  lay_out();
}

void TopologyCanvas::set_use(std::shared_ptr<const LinkUsage> usage, LinkUsage::Load load,
                             std::vector<LinkUsage::Busy> busiest) {
  usage_ = std::move(usage);
  load_ = std::move(load);
  busiest_ = std::move(busiest);
  read_use();
  repaint_picture();
}

void TopologyCanvas::set_highlighted(std::vector<LinkId> links) {
  if (links == highlighted_) return;
  highlighted_ = std::move(links);
  read_use();
  repaint_picture();
}

void TopologyCanvas::select_link(std::optional<LinkId> link) {
  selected_ = link;
  if (link && topology_ && topology_->inside(*link) >= 0) {
    const int node = topology_->inside(*link);
    const bool is_open = std::any_of(open_nodes_.begin(), open_nodes_.end(),
                                     [&](const OpenNode& open) { return open.node == node; });
    if (!is_open) toggle_node(node);
  }
  repaint_picture();
}

void TopologyCanvas::repaint_picture() {
  picture_old_ = true;
  update();
}

void TopologyCanvas::lay_out() {
  if (topology_) {
    shown_ = shown_graph(*topology_, open_groups_);
    layout_ = layout_of(*topology_, shown_);
  }
  make();
}

void TopologyCanvas::make() {
  scene_ = {};
  if (topology_) {
    const QRectF area = QRectF(rect()).adjusted(4, 4, -6, -kLegend);
    scene_ = make_scene(*topology_, shown_, layout_, open_nodes_, area, view_, QFontMetricsF(font()));
  }
  read_use();
  repaint_picture();
}

void TopologyCanvas::read_use() {
  uses_.assign(scene_.edges.size(), {});
  inside_use_.clear();
  highlighted_nodes_.clear();
  if (!topology_) return;
  const auto marked = [&](LinkId link) {
    return !highlighted_.empty() && std::binary_search(highlighted_.begin(), highlighted_.end(), link);
  };
  for (const LinkId link : highlighted_)
    if (topology_->inside(link) >= 0) highlighted_nodes_.insert(topology_->inside(link));
  for (std::size_t e = 0; e < scene_.edges.size(); ++e) {
    const SceneEdge& edge = scene_.edges[e];
    Use& use = uses_[e];
    double most = -1;
    for (const auto& [links, share] : {std::pair(&edge.there, &use.there), std::pair(&edge.back, &use.back)})
      for (const LinkId link : *links) {
        const double now = usage_ ? usage_->use(load_, link) : 0;
        *share = std::max(*share, now);
        use.highlighted = use.highlighted || marked(link);
        if (now > most) {
          most = now;
          use.most = link;
        }
      }
  }
  if (!usage_) return;
  inside_use_.assign(static_cast<std::size_t>(topology_->hosts()), 0.0);
  for (LinkId link = 0; link < topology_->cluster().links(); ++link) {
    const int node = topology_->inside(link);
    if (node >= 0) inside_use_[node] = std::max(inside_use_[node], usage_->use(load_, link));
  }
}

int TopologyCanvas::node_of(const SceneVertex& vertex) const {
  if (vertex.vertex < 0 || shown_.vertices[vertex.vertex].members > 1) return -1;
  const int place = shown_.vertices[vertex.vertex].place;
  const Place::Kind kind = topology_->places()[place].kind;
  return kind == Place::Kind::node || kind == Place::Kind::server ? place : -1;
}

int TopologyCanvas::edge_with(LinkId link) const {
  for (std::size_t e = 0; e < scene_.edges.size(); ++e)
    for (const auto* links : {&scene_.edges[e].there, &scene_.edges[e].back})
      if (std::find(links->begin(), links->end(), link) != links->end()) return static_cast<int>(e);
  return -1;
}

void TopologyCanvas::toggle_node(int node) {
  const auto open = std::find_if(open_nodes_.begin(), open_nodes_.end(),
                                 [&](const OpenNode& one) { return one.node == node; });
  if (open != open_nodes_.end()) {
    open_nodes_.erase(open);
  } else {
    open_nodes_.push_back({node, inside_of(topology_->cluster(), node)});
    if (open_nodes_.size() > kMostOpen) open_nodes_.erase(open_nodes_.begin());
  }
  make();
}

void TopologyCanvas::open_group(int group) {
  open_groups_.insert(group);
  lay_out();
}

void TopologyCanvas::fit() {
  view_ = {};
  make();
}

void TopologyCanvas::fold_all() {
  open_groups_.clear();
  open_nodes_.clear();
  view_ = {};
  lay_out();
}

void TopologyCanvas::zoom_by(double factor, QPointF about) {
  const double zoom = std::clamp(view_.zoom * factor, 0.25, 60.0);
  // Keep the point under `about` in place.
  const QPointF centre = scene_.room.center();
  view_.moved = about - centre - (about - centre - view_.moved) * (zoom / view_.zoom);
  view_.zoom = zoom;
  make();
}

void TopologyCanvas::step(int by) {
  if (busiest_.empty() || !topology_) return;
  int at = -1;
  for (std::size_t i = 0; i < busiest_.size(); ++i)
    if (selected_ && busiest_[i].link == *selected_) at = static_cast<int>(i);
  const int last = static_cast<int>(busiest_.size()) - 1;
  const int next = at < 0 ? (by > 0 ? 0 : last) : std::clamp(at + by, 0, last);
  const LinkId link = busiest_[next].link;
  select_link(link);
  emit chosen({link}, link);
}

void TopologyCanvas::open_at_selection() {
  if (!selected_ || !topology_) return;
  const int inside = topology_->inside(*selected_);
  if (inside >= 0) {
    toggle_node(inside);
    return;
  }
  if (topology_->cable_of(*selected_) < 0) return;
  const Cable& cable = topology_->cables()[topology_->cable_of(*selected_)];
  std::set<int> around = topology_->groups_around(cable.a);
  around.merge(topology_->groups_around(cable.b));
  const bool hidden = !std::includes(open_groups_.begin(), open_groups_.end(), around.begin(), around.end());
  if (hidden) {
    open_groups_.merge(around);
    lay_out();
  } else if (topology_->places()[cable.a].layer == 0 &&
             topology_->places()[cable.a].kind != Place::Kind::idle) {
    toggle_node(cable.a);
  }
}

QString TopologyCanvas::tip_of(const SceneEdge& edge) const {
  const Cluster& cluster = topology_->cluster();
  const auto line = [&](LinkId link) {
    QString text =
        QString::fromStdString(cluster.link_name(link) + ": " + rate_text(cluster.bandwidth(link)));
    if (usage_)
      text += QString::fromStdString(", " + share_text(usage_->use(load_, link)) + " used, " +
                                     bytes_text(usage_->bytes(load_, link)) + " carried");
    return text;
  };
  if (edge.there.size() == 1) return line(edge.there.front()) + '\n' + line(edge.back.front());
  const Use& use = uses_[static_cast<std::size_t>(&edge - scene_.edges.data())];
  return QString("%1 cables of %2 each; the busiest:\n")
             .arg(edge.there.size())
             .arg(QString::fromStdString(rate_text(edge.capacity))) +
         line(use.most);
}

QString TopologyCanvas::tip_of(const SceneVertex& vertex) const {
  QString text = vertex.title;
  if (!vertex.detail.isEmpty()) text += "\n" + vertex.detail + "\nClick: open";
  const int node = node_of(vertex);
  if (node < 0 || vertex.node >= 0) return text;
  if (node < static_cast<int>(inside_use_.size()))
    text += QString::fromStdString("\nInside, at most " + share_text(inside_use_[node]) + " used");
  return text + "\nClick: show the inside";
}

bool TopologyCanvas::event(QEvent* event) {
  if (event->type() == QEvent::ToolTip && topology_) {
    const auto* const help = static_cast<QHelpEvent*>(event);
    const int vertex = scene_.vertex_at(help->pos()), edge = scene_.edge_at(help->pos());
    if (vertex >= 0)
      QToolTip::showText(help->globalPos(), tip_of(scene_.vertices[vertex]), this);
    else if (edge >= 0)
      QToolTip::showText(help->globalPos(), tip_of(scene_.edges[edge]), this);
    else
      QToolTip::hideText();
    return true;
  }
  // Tab steps through the links, and leaves the canvas after the last one.
  if (event->type() == QEvent::KeyPress && !busiest_.empty()) {
    auto* const key = static_cast<QKeyEvent*>(event);
    const bool back = key->key() == Qt::Key_Backtab;
    const LinkId end = back ? busiest_.front().link : busiest_.back().link;
    if ((key->key() == Qt::Key_Tab || back) && (!selected_ || *selected_ != end)) {
      step(back ? -1 : 1);
      return true;
    }
  }
  return QWidget::event(event);
}

void TopologyCanvas::resizeEvent(QResizeEvent*) {
  make();
}

void TopologyCanvas::mousePressEvent(QMouseEvent* event) {
  if (event->button() != Qt::LeftButton) return;
  pressed_ = event->position();
  moved_from_ = view_.moved;
  dragging_ = false;
}

void TopologyCanvas::mouseMoveEvent(QMouseEvent* event) {
  if ((event->buttons() & Qt::LeftButton) != 0 && topology_) {
    const QPointF by = event->position() - pressed_;
    if (!dragging_ && by.manhattanLength() < QApplication::startDragDistance()) return;
    dragging_ = true;
    view_.moved = moved_from_ + by;
    setCursor(Qt::ClosedHandCursor);
    make();
    return;
  }
  const bool on_something =
      scene_.vertex_at(event->position()) >= 0 || scene_.edge_at(event->position()) >= 0;
  setCursor(on_something ? Qt::PointingHandCursor : Qt::ArrowCursor);
}

void TopologyCanvas::mouseReleaseEvent(QMouseEvent* event) {
  if (event->button() != Qt::LeftButton) return;
  setCursor(Qt::ArrowCursor);
  if (std::exchange(dragging_, false) || !topology_) return;
  const int vertex = scene_.vertex_at(event->position());
  if (vertex >= 0) {
    const SceneVertex& hit = scene_.vertices[vertex];
    const int group = hit.vertex >= 0 ? shown_.vertices[hit.vertex].group : -1;
    if (group >= 0)
      open_group(group);
    else if (node_of(hit) >= 0)
      toggle_node(node_of(hit));
    return;
  }
  const int edge = scene_.edge_at(event->position());
  if (edge < 0) {
    select_link({});
    emit chosen({}, -1);
    return;
  }
  const SceneEdge& hit = scene_.edges[edge];
  std::vector<LinkId> links = hit.there;
  links.insert(links.end(), hit.back.begin(), hit.back.end());
  selected_ = uses_[edge].most;
  repaint_picture();
  emit chosen(links, *selected_);
}

void TopologyCanvas::wheelEvent(QWheelEvent* event) {
  const double notches = event->angleDelta().y() / 120.0;
  if (notches != 0 && topology_) zoom_by(std::pow(1.2, notches), event->position());
  event->accept();
}

void TopologyCanvas::keyPressEvent(QKeyEvent* event) {
  switch (event->key()) {
    case Qt::Key_Right:
    case Qt::Key_Down:
      return step(1);
    case Qt::Key_Left:
    case Qt::Key_Up:
      return step(-1);
    case Qt::Key_Return:
    case Qt::Key_Enter:
      return open_at_selection();
    case Qt::Key_Plus:
      return zoom_by(1.25, scene_.graph.center());
    case Qt::Key_Minus:
      return zoom_by(0.8, scene_.graph.center());
    case Qt::Key_Escape:
      if (selected_) {
        select_link({});
        emit chosen({}, -1);
        return;
      }
      break;
    default:
      break;
  }
  QWidget::keyPressEvent(event);
}

void TopologyCanvas::contextMenuEvent(QContextMenuEvent* event) {
  QMenu menu(this);
  const int vertex = scene_.vertex_at(event->pos());
  if (vertex >= 0 && scene_.vertices[vertex].vertex >= 0) {
    const ShownGraph::Vertex& hit = shown_.vertices[scene_.vertices[vertex].vertex];
    int around = topology_->places()[hit.place].group;  // innermost open group around it
    while (around >= 0 && open_groups_.count(around) == 0) around = topology_->groups()[around].parent;
    if (hit.group >= 0)
      menu.addAction("Open " + scene_.vertices[vertex].title, this, [=, this] { open_group(hit.group); });
    if (around >= 0)
      menu.addAction("Fold the group around " + scene_.vertices[vertex].title, this, [=, this] {
        open_groups_.erase(around);
        lay_out();
      });
  }
  for (QAction* const action : parentWidget()->actions()) menu.addAction(action);
  menu.exec(event->globalPos());
}

void TopologyCanvas::changeEvent(QEvent* event) {
  if (event->type() == QEvent::FontChange) make();
  if (event->type() == QEvent::PaletteChange) repaint_picture();
  QWidget::changeEvent(event);
}

}  // namespace rehearse::gui
