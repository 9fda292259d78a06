"""What mg.draw returns: a graphviz.Digraph that notebooks show, with whatever `dot` there is.

This file imports the Python package graphviz, and is itself imported when somebody draws.
"""

import graphviz

from ..errors import MinigradError
from .dot import find_dot, picture_of


class Diagram(graphviz.Digraph):
    """A graphviz.Digraph; `.source` is the DOT text, and `mg.render` makes a file of it.

    A notebook shows it, with the system's `dot` or with the one of graphviz-pure. Where there is neither, it shows
    how to get one, and the text.
    """

    def _repr_mimebundle_(self, include=None, exclude=None, **_):
        try:
            find_dot()
        except MinigradError as error:
            return {"text/plain": f"{error}\n\n{self.source}"}
        return super()._repr_mimebundle_(include, exclude)

    def _repr_svg_(self):
        return self._repr_image_svg_xml()

    def _repr_image_svg_xml(self):
        return picture_of(self, "svg").decode("utf-8")

    def _repr_image_png(self):
        return picture_of(self, "png")

    def _repr_image_jpeg(self):
        return picture_of(self, "jpg")
