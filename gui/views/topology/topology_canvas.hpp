// Draws a topology with links coloured by their use; lets the user zoom, pan, open groups and step through
// links.
#pragma once

#include <QImage>
#include <QWidget>
#include <optional>
#include <set>

#include "gui/models/topology/link_use.hpp"
#include "gui/views/topology/topology_scene.hpp"

namespace rehearse::gui {

class TopologyCanvas : public QWidget {
  Q_OBJECT
public:
  explicit TopologyCanvas(QWidget* parent = nullptr);

  void set_topology(std::shared_ptr<const Topology> topology);  // null for none
  void set_use(std::shared_ptr<const LinkUsage> usage, LinkUsage::Load load,
               std::vector<LinkUsage::Busy> busiest);
  void set_highlighted(std::vector<LinkId> links);  // in ascending order
  void select_link(std::optional<LinkId> link);     // opens the node that contains the link

  const TopologyScene& scene() const { return scene_; }
  const std::vector<LinkId>& highlighted() const { return highlighted_; }
  QString message;  // shown instead of a picture
  bool event(QEvent* event) override;

public slots:
  void fit();
  void fold_all();
  void zoom_by(double factor, QPointF about);
  void step(int by);  // to the next busier (-1) or less busy (1) link
  void open_at_selection();

signals:
  // Emitted with all links of the chosen line, of which `link` is the busiest; both are empty if the user
  // chose the background.
  void chosen(const std::vector<rehearse::LinkId>& links, rehearse::LinkId link);

protected:
  void paintEvent(QPaintEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mouseReleaseEvent(QMouseEvent* event) override;
  void wheelEvent(QWheelEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void contextMenuEvent(QContextMenuEvent* event) override;
  void changeEvent(QEvent* event) override;

private:
  struct Use {  // shares of a line's busiest link in each direction
    double there = 0, back = 0;
    LinkId most = -1;
    bool highlighted = false;
  };
  void lay_out();   // after opening or folding groups
  void make();      // after a change of size, view or open nodes
  void read_use();  // for each line
  void toggle_node(int node);
  void open_group(int group);
  int node_of(const SceneVertex& vertex) const;  // the node or server that it represents alone; -1 otherwise
  int edge_with(LinkId link) const;
  QString tip_of(const SceneEdge& edge) const;
  QString tip_of(const SceneVertex& vertex) const;
  void repaint_picture();  // marks the cached picture as outdated
  void paint_picture(QPainter& painter) const;
  void paint_edges(QPainter& painter) const;
  void paint_vertices(QPainter& painter) const;
  void paint_labels(QPainter& painter) const;
  void paint_names(QPainter& painter) const;  // of links
  void paint_legend(QPainter& painter) const;
  QColor colour(double use) const;

  std::shared_ptr<const Topology> topology_;
  std::shared_ptr<const LinkUsage> usage_;
  LinkUsage::Load load_;
  std::vector<LinkUsage::Busy> busiest_;
  std::vector<LinkId> highlighted_;
  std::optional<LinkId> selected_;
  std::set<int> open_groups_;
  std::vector<OpenNode> open_nodes_;
  ShownGraph shown_;
  GraphLayout layout_;
  SceneView view_;
  TopologyScene scene_;
  std::vector<Use> uses_;           // indexed by line
  std::vector<double> inside_use_;  // indexed by node: use of its busiest inner link
  std::set<int> highlighted_nodes_;
  QPointF pressed_, moved_from_;
  bool dragging_ = false;
  QImage picture_;  // cached, without the focus frame
  bool picture_old_ = true;
};

// Maps a use to the share for colour_of_use() so that low uses remain distinguishable.
double shade_of_use(double use);

}  // namespace rehearse::gui
