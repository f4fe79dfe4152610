// The picture of a topology: links coloured by their use, zoomed, moved, opened and stepped through.
#pragma once

#include <QImage>
#include <QWidget>
#include <optional>
#include <set>

#include "gui/models/link_use.hpp"
#include "gui/views/topology_scene.hpp"

namespace rehearse::gui {

class TopologyCanvas : public QWidget {
  Q_OBJECT
public:
  explicit TopologyCanvas(QWidget* parent = nullptr);

  void set_topology(std::shared_ptr<const Topology> topology);  // null: none
  void set_use(std::shared_ptr<const LinkUsage> usage, LinkUsage::Load load,
               std::vector<LinkUsage::Busy> busiest);
  void set_highlighted(std::vector<LinkId> links);  // ascending
  void select_link(std::optional<LinkId> link);     // opens what hides it inside a node

  const TopologyScene& scene() const { return scene_; }
  const std::vector<LinkId>& highlighted() const { return highlighted_; }
  QString message;  // in place of a picture
  bool event(QEvent* event) override;

public slots:
  void fit();
  void fold_all();
  void zoom_by(double factor, QPointF about);
  void step(int by);  // to the next busier (-1) or less busy link
  void open_at_selection();

signals:
  // All links of the line that was chosen, of which `link` is the busiest; none: the ground was.
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
  struct Use {  // of a line's busiest link, each way
    double there = 0, back = 0;
    LinkId most = -1;
    bool highlighted = false;
  };
  void lay_out();   // groups or opened nodes changed
  void make();      // the size or the view changed
  void read_use();  // of each line
  void toggle_node(int node);
  void open_group(int group);
  int node_of(const SceneVertex& vertex) const;  // that it stands for alone; -1
  int edge_with(LinkId link) const;
  QString tip_of(const SceneEdge& edge) const;
  QString tip_of(const SceneVertex& vertex) const;
  void repaint_picture();  // it has changed
  void paint_picture(QPainter& painter) const;
  void paint_edges(QPainter& painter) const;
  void paint_vertices(QPainter& painter) const;
  void paint_names(QPainter& painter) const;
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
  std::vector<Use> uses_;           // by line
  std::vector<double> inside_use_;  // by node: of its busiest inner link
  std::set<int> highlighted_nodes_;
  QPointF pressed_, moved_from_;
  bool dragging_ = false;
  QImage picture_;  // as it stood last, without what the focus adds
  bool picture_old_ = true;
};

// What colour_of_use() is asked: low uses are told apart, too.
double shade_of_use(double use);

}  // namespace rehearse::gui
